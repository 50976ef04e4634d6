import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { SheetCheck, StartChoices } from "../../shapes.js";
import { after } from "../system.js";
import { post } from "./client.js";

export interface Checked {
  check: SheetCheck | null;
  error: string | null;
  isBusy: boolean;
}

const settleMs = 400;
/** Each plan is two requests: where these are limited, changes that follow each other are planned together. */
const limitedSettleMs = 2_000;

/**
 * Plans the sheet as it would be started, and plans again after each change once typing stops. One plan is made at a
 * time, because each is a process.
 */
export function useCheck(choices: StartChoices, version: number): Checked {
  const [state, setState] = useState<Checked>({ check: null, error: null, isBusy: true });
  const wanted = useRef({ choices, isNew: true, isGone: false });
  const isRunning = useRef(false);
  const waitMs = useRef(settleMs);
  const run = useCallback(async () => {
    if (isRunning.current) return;
    isRunning.current = true;
    while (wanted.current.isNew && !wanted.current.isGone) {
      wanted.current.isNew = false;
      const found = await post<SheetCheck>("/api/check", wanted.current.choices).then(
        (check) => ({ check, error: null }),
        (error: unknown) => ({ check: null, error: error instanceof Error ? error.message : String(error) }),
      );
      if (found.check !== null)
        waitMs.current = found.check.requests.perMinute === null ? settleMs : limitedSettleMs;
      setState({ ...found, isBusy: wanted.current.isNew });
    }
    isRunning.current = false;
  }, []);
  // Another version of the sheet is checked again.
  useEffect(() => {
    setState((before) => ({ ...before, isBusy: true }));
    return after(waitMs.current, () => {
      wanted.current = { choices, isNew: true, isGone: false };
      void run();
    });
  }, [choices, version, run]);
  useEffect(
    () => () => {
      wanted.current.isGone = true;
    },
    [],
  );
  return state;
}
