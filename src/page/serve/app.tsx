import { useEffect, useState } from "preact/hooks";
import type {
  NewKeyRequest,
  NewServedKey,
  ServedCheck,
  ServedSpend,
  ServedStanding,
  WordOnJob,
} from "../../api/served-page.js";
import { useAttempts } from "../parts/service/attempts.js";
import { Brand } from "../parts/service/brand.js";
import { get, post, RefusedRequest } from "../parts/service/client.js";
import { NoAnswer, Notice, refreshMs } from "../parts/service/notice.js";
import { after } from "../parts/service/system.js";
import { Jobs, UnknownJobs } from "./jobs.js";
import { Keys } from "./keys.js";
import { Models } from "./models.js";
import { Spend } from "./spend.js";

/** With so many answers the sums of a month are asked for again, too. */
const spendEvery = 10;

interface Seen {
  /** What the service last said. */
  standing: ServedStanding | null;
  spend: ServedSpend | null;
  /** Why there is nothing, or nothing new. */
  trouble: Error | null;
  times: number;
}

export function App() {
  const [{ standing, spend, trouble, times }, setSeen] = useState<Seen>({
    standing: null,
    spend: null,
    trouble: null,
    times: 0,
  });
  const [check, setCheck] = useState<ServedCheck | null>(null);
  const load = async (withSpend: boolean) => {
    try {
      const [standing, spend] = await Promise.all([
        get<ServedStanding>("standing"),
        withSpend ? get<ServedSpend>("spend") : null,
      ]);
      setSeen((seen) => ({ standing, spend: spend ?? seen.spend, trouble: null, times: seen.times + 1 }));
    } catch (error) {
      setSeen((seen) => ({ ...seen, trouble: error as Error, times: seen.times + 1 }));
    }
  };
  const askProviders = async () => {
    setCheck(null);
    // Without an answer the page says already that the service does not answer.
    setCheck(await get<ServedCheck>("check").catch(() => null));
  };
  const { made, showMade, refused, attempt } = useAttempts<NewServedKey>("service", () => load(true));
  useEffect(() => void load(true), []);
  const isOver = trouble instanceof RefusedRequest;
  useEffect(
    () => (times === 0 || isOver ? undefined : after(refreshMs, () => void load(times % spendEvery === 0))),
    [times, isOver],
  );

  // The models file may change while it is served.
  const served = standing?.models.map(({ key, provider, kind }) => [key, provider, kind]);
  useEffect(() => {
    if (served !== undefined) void askProviders();
  }, [JSON.stringify(served)]);

  if (standing === null || isOver) return <Notice trouble={trouble} service="service" />;
  const { formToken, credit, now } = standing;
  const createKey = (newKey: NewKeyRequest) =>
    attempt("keys", async () => showMade(await post<NewServedKey>("keys", formToken, newKey)));
  const revokeKey = (id: string) =>
    attempt("keys", () => post(`keys/${encodeURIComponent(id)}/revoke`, formToken, {}));
  const resolve = (id: string, word: WordOnJob) =>
    attempt("jobs", () => post(`jobs/${encodeURIComponent(id)}/resolve`, formToken, word));
  const refusedAbout = (about: string) => (refused?.about === about ? refused.message : null);
  return (
    <>
      <Header url={standing.url} />
      <main>
        <h1 class="unseen">Models that are served</h1>
        {trouble !== null && <NoAnswer service="service" />}
        <UnknownJobs standing={standing} resolve={resolve} refused={refusedAbout("jobs")} />
        <Models standing={standing} check={check} askProviders={askProviders} />
        <Jobs standing={standing} />
        <Keys
          keys={standing.keys}
          now={now}
          createKey={createKey}
          revokeKey={revokeKey}
          made={made}
          refused={refusedAbout("keys")}
        />
        {spend !== null && <Spend spend={spend} credit={credit} />}
      </main>
    </>
  );
}

function Header({ url }: { url: string }) {
  return (
    <header>
      <Brand name="serve" href="/dashboard" />
      <p class="who">
        Base URL <code>{url}</code>
      </p>
    </header>
  );
}
