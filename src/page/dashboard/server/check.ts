import { useEffect, useRef, useState } from "preact/hooks";
import type { SheetCheck, StartChoices } from "../../../documents/page.js";
import { after } from "../system.js";
import { post } from "./client.js";
import { inTurn } from "./in-turn.js";

export interface Checked {
  check: SheetCheck | null;
  error: string | null;
  isBusy: boolean;
}

const settleMs = 400;
/** Each plan is two requests: where these are limited, changes that follow each other are planned together. */
const limitedSettleMs = 2_000;

/** What a plan was made of. */
interface Asked {
  choices: StartChoices;
  version: number;
}

interface Found extends Pick<Checked, "check" | "error"> {
  of: Asked | null;
}

/**
 * Plans the sheet as it would be started, and plans again after each change once typing stops. One plan is made at a
 * time, because each is a process. It is busy until the plan is of what is asked for now.
 */
export function useCheck(choices: StartChoices, version: number): Checked {
  const [{ check, error, of }, setFound] = useState<Found>({ check: null, error: null, of: null });
  const wanted = useRef<Asked | null>(null);
  const waitMs = useRef(settleMs);
  const plan = useRef(
    inTurn(async () => {
      const of = wanted.current;
      if (of === null) return;
      const found = await post<SheetCheck>("/api/check", of.choices).then(
        (check) => ({ check, error: null }),
        (error: unknown) => ({ check: null, error: error instanceof Error ? error.message : String(error) }),
      );
      if (found.check !== null)
        waitMs.current = found.check.requests.perMinute === null ? settleMs : limitedSettleMs;
      setFound({ ...found, of });
    }),
  );
  // Another version of the sheet is checked again.
  useEffect(
    () =>
      after(waitMs.current, () => {
        wanted.current = { choices, version };
        plan.current();
      }),
    [choices, version],
  );
  useEffect(
    () => () => {
      wanted.current = null;
    },
    [],
  );
  return { check, error, isBusy: of?.choices !== choices || of.version !== version };
}
