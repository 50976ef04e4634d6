import { wantedItems } from "../../../core/item.js";
import type { LiveRun, QuotaWindow } from "../../../documents/page.js";
import { duration } from "../../../text/amounts.js";
import { number } from "../../parts/amounts.js";
import { visible } from "../../parts/visible.js";
import { link } from "../route.js";
import { Progress } from "./states.js";
import { Words } from "./words.js";

/** The run in progress, small: beside every view. */
export function LiveCard({ live, now }: { live: LiveRun; now: number }) {
  const { counts, run, job, since, reason } = live;
  return (
    <a class="live-card" href={link("runs", run)}>
      <span class="live-head">
        <i class="pulse" />
        <Words text={job} /> <span class="quiet">run {run}</span>
      </span>
      <Progress counts={counts} label="Progress of the run" />
      <span class="quiet">
        {number(counts.archived ?? 0)} of {number(wantedItems(counts))} ·{" "}
        {duration(Math.max(0, Math.floor((now - since) / 1_000) * 1_000))}
      </span>
      {reason !== null && <span class="stuck">{visible(reason.text)}</span>}
    </a>
  );
}

/** Why the run waits, if it does. */
export function ReasonNote({ live: { reason } }: { live: LiveRun }) {
  if (reason === null) return null;
  return (
    <p class="caution" role="status" dir="auto">
      Now: {visible(reason.text)}
    </p>
  );
}

/** How many requests of a window are used. Where nothing limits them, not all are on record. */
export function QuotaGauge({ label, window }: { label: string; window: QuotaWindow }) {
  if (window.limit !== null) return <Gauge label={label} used={window.used} limit={window.limit} />;
  return (
    <div class="gauge">
      <span>{label}</span>
      <span class="quiet">no limit</span>
    </div>
  );
}

/** How much of a limit is used. */
export function Gauge({ label, used, limit }: { label: string; used: number; limit: number }) {
  return (
    <div class="gauge">
      <span>{label}</span>
      <b>
        {number(used)} <span class="quiet">of {number(limit)}</span>
      </b>
      <meter min={0} max={Math.max(1, limit)} value={used} aria-label={label} />
    </div>
  );
}
