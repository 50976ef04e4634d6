import type { Decision, View } from "../core/next/next.js";
import { isLongWait, left, silenceText, utcTime } from "../core/quota/quota.js";
import type { Session } from "./session.js";

/** Ends the run where it would wait for hours, unless somebody wants it to. */
export function stopForLongWait(session: Session, { quota, now }: View, { waiting }: Decision): void {
  const silentUntil = quota.blockedUntil ?? now;
  if (session.settings.onDailyLimit === "wait" || !isLongWait(waiting, silentUntil - now)) return;
  const until = utcTime(quota.day.nextReleaseAt ?? now);
  if (waiting === "service") session.stop("silence", silenceText(silentUntil));
  else if (left(quota.day) < 1) session.stop("day", `the day's requests are used up until ${until}`);
  else
    session.stop(
      "reserve",
      `what is left of the day's requests is kept for open tasks; more from ${until} on`,
    );
}
