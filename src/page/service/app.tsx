import { useEffect, useState } from "preact/hooks";
import type { AccountAnswer, NewKey } from "../../api/service-page.js";
import { useAttempts } from "../parts/service/attempts.js";
import { Brand } from "../parts/service/brand.js";
import { RefusedRequest } from "../parts/service/client.js";
import { NoAnswer, Notice, refreshMs } from "../parts/service/notice.js";
import { after } from "../parts/service/system.js";
import { change, getAccount } from "./account.js";
import { Cards } from "./cards.js";
import { Connect } from "./connect.js";
import { Keys } from "./keys.js";
import { Tasks } from "./tasks.js";

interface Seen {
  /** What the service last said. */
  answer: AccountAnswer | null;
  /** Why there is nothing, or nothing new. */
  trouble: Error | null;
}

export function App() {
  const [{ answer, trouble }, setSeen] = useState<Seen>({ answer: null, trouble: null });
  const load = async () => {
    try {
      setSeen({ answer: await getAccount(), trouble: null });
    } catch (error) {
      setSeen((seen) => ({ answer: seen.answer, trouble: error as Error }));
    }
  };
  const { made, showMade, refused, attempt } = useAttempts<NewKey>("sandbox", load);
  useEffect(() => void load(), []);
  const isOpen = answer?.tasks.some(({ status }) => status === "processing") ?? false;
  // While a task is being made, or while nothing answers.
  const asksAgain = trouble === null ? isOpen : !(trouble instanceof RefusedRequest);
  useEffect(() => (asksAgain ? after(refreshMs, () => void load()) : undefined), [answer, trouble]);

  if (answer === null || trouble instanceof RefusedRequest)
    return <Notice trouble={trouble} service="sandbox" />;
  const createKey = (name: string) =>
    attempt("keys", async () => showMade(await change<NewKey>("keys", answer, { name })));
  const revokeKey = (id: string) =>
    attempt("keys", () => change(`keys/${encodeURIComponent(id)}/revoke`, answer));
  const activate = () => attempt("account", () => change("activate", answer));
  return (
    <>
      <Header answer={answer} />
      <main>
        <h1 class="unseen">Dashboard</h1>
        {trouble !== null && <NoAnswer service="sandbox" />}
        <Cards answer={answer} activate={activate} />
        <Connect publicKey={answer.publicKey} />
        <Keys
          answer={answer}
          createKey={createKey}
          revokeKey={revokeKey}
          made={made}
          refused={refused?.message ?? null}
        />
        <Tasks answer={answer} />
      </main>
      <footer>
        This service runs on this machine alone. Nothing here costs money. Its pictures, clips and tunes stand
        for a generation; they do not show what the prompt says.
      </footer>
    </>
  );
}

function Header({ answer: { account, accounts } }: { answer: AccountAnswer }) {
  const address = (id: string) => `/dashboard?${new URLSearchParams({ user: id })}`;
  return (
    <header>
      <Brand name="sandbox" href={address(account.id)} />
      {accounts.length > 1 ? (
        <nav class="who" aria-label="Users">
          {accounts.map(({ id, name, email }) => (
            <a
              key={id}
              href={address(id)}
              aria-current={id === account.id ? "true" : undefined}
              title={email}
            >
              {name ?? email}
            </a>
          ))}
        </nav>
      ) : (
        <p class="who">{account.email}</p>
      )}
    </header>
  );
}
