import { useEffect, useState } from "preact/hooks";
import type { AccountAnswer, NewKey } from "../../api/service-page.js";
import { Cards } from "./cards.js";
import { change, getAccount, RefusedRequest } from "./client.js";
import { Connect } from "./connect.js";
import { Keys } from "./keys.js";
import { Notice } from "./notice.js";
import { after } from "./system.js";
import { Tasks } from "./tasks.js";

/** How often the page asks again while a task is being made, or while nothing answers (ms). */
const refreshMs = 3_000;

interface Seen {
  /** What the service last said. */
  answer: AccountAnswer | null;
  /** Why there is nothing, or nothing new. */
  trouble: Error | null;
}

export function App() {
  const [{ answer, trouble }, setSeen] = useState<Seen>({ answer: null, trouble: null });
  const [made, setMade] = useState<NewKey | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const load = async () => {
    try {
      setSeen({ answer: await getAccount(), trouble: null });
    } catch (error) {
      setSeen((seen) => ({ answer: seen.answer, trouble: error as Error }));
    }
  };
  useEffect(() => {
    void load();
    // A page that the browser keeps must not show a new key a second time.
    const forget = () => setMade(null);
    addEventListener("pagehide", forget);
    return () => removeEventListener("pagehide", forget);
  }, []);
  const isOpen = answer?.tasks.some(({ status }) => status === "processing") ?? false;
  const asksAgain = trouble === null ? isOpen : !(trouble instanceof RefusedRequest);
  useEffect(() => (asksAgain ? after(refreshMs, () => void load()) : undefined), [answer, trouble]);

  if (answer === null || trouble instanceof RefusedRequest)
    return <Notice trouble={trouble} service="sandbox" />;
  /** Does what is asked for, and shows the key that was made, or why not, and what the service then says. Tells whether it was done. */
  const attempt = async (act: () => Promise<NewKey | null>) => {
    setRefused(null);
    setMade(null);
    try {
      setMade(await act());
    } catch (error) {
      setRefused(error instanceof RefusedRequest ? error.message : "The sandbox does not answer.");
      return false;
    }
    await load();
    return true;
  };
  const createKey = (name: string) => attempt(() => change<NewKey>("keys", answer, { name }));
  const revokeKey = (id: string) =>
    attempt(async () => {
      await change(`keys/${encodeURIComponent(id)}/revoke`, answer);
      return null;
    });
  const activate = () =>
    attempt(async () => {
      await change("activate", answer);
      return null;
    });
  return (
    <>
      <Header answer={answer} />
      <main>
        <h1 class="unseen">Dashboard</h1>
        {trouble !== null && (
          <p class="refused" role="alert">
            The sandbox does not answer. This page asks again every {refreshMs / 1_000} seconds.
          </p>
        )}
        <Cards answer={answer} activate={activate} />
        <Connect publicKey={answer.publicKey} />
        <Keys answer={answer} createKey={createKey} revokeKey={revokeKey} made={made} refused={refused} />
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
      <a class="brand" href={address(account.id)}>
        <img
          src={document.querySelector<HTMLLinkElement>("link[rel=icon]")?.href}
          alt=""
          width="28"
          height="28"
        />
        bulkgen <span>sandbox</span>
      </a>
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
