import { useEffect, useState } from "preact/hooks";
import type {
  KeyWish,
  NewServedKey,
  ServedCheck,
  ServedSpend,
  ServedStanding,
  WordOnJob,
} from "../../api/served-page.js";
import { get, post, RefusedRequest } from "../service/client.js";
import { Notice } from "../service/notice.js";
import { after } from "../service/system.js";
import { Jobs, UnknownJobs } from "./jobs.js";
import { Keys } from "./keys.js";
import { Models } from "./models.js";
import { Spend } from "./spend.js";

/** How often the page asks again (ms). */
const refreshMs = 3_000;
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
  const [made, setMade] = useState<NewServedKey | null>(null);
  const [refused, setRefused] = useState<{ about: string; message: string } | null>(null);
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
  useEffect(() => {
    void load(true);
    // A page that the browser keeps must not show a new key a second time.
    const forget = () => setMade(null);
    addEventListener("pagehide", forget);
    return () => removeEventListener("pagehide", forget);
  }, []);
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
  /** Does what is asked for, and shows why not, and how the service then stands. Tells whether it was done. */
  const attempt = async (about: string, act: () => Promise<unknown>) => {
    setRefused(null);
    setMade(null);
    try {
      await act();
    } catch (error) {
      const message = error instanceof RefusedRequest ? error.message : "The service does not answer.";
      setRefused({ about, message });
      return false;
    }
    await load(true);
    return true;
  };
  const { formToken, credit, now } = standing;
  const createKey = (wish: KeyWish) =>
    attempt("keys", async () => setMade(await post<NewServedKey>("keys", formToken, wish)));
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
        {trouble !== null && (
          <p class="refused" role="alert">
            The service does not answer. This page asks again every {refreshMs / 1_000} seconds.
          </p>
        )}
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
      <a class="brand" href="/dashboard">
        <img
          src={document.querySelector<HTMLLinkElement>("link[rel=icon]")?.href}
          alt=""
          width="28"
          height="28"
        />
        bulkgen <span>serve</span>
      </a>
      <p class="who">
        Base URL <code>{url}</code>
      </p>
    </header>
  );
}
