import { useEffect, useState } from "preact/hooks";
import type { SheetCheck, StartChoices } from "../../shapes.js";
import { after } from "../system.js";
import { post } from "./client.js";

export interface Checked {
  check: SheetCheck | null;
  error: string | null;
  isBusy: boolean;
}

const settleMs = 400;

/** Plans the sheet as it would be started, again whenever something has been changed and nobody types any more. */
export function useCheck(choices: StartChoices, version: number): Checked {
  const [state, setState] = useState<Checked>({ check: null, error: null, isBusy: true });
  // Another version of the sheet is checked again.
  useEffect(() => {
    let isOld = false;
    setState((before) => ({ ...before, isBusy: true }));
    const stop = after(settleMs, () => {
      post<SheetCheck>("/api/check", choices).then(
        (check) => {
          if (!isOld) setState({ check, error: null, isBusy: false });
        },
        (error: unknown) => {
          if (!isOld)
            setState({
              check: null,
              error: error instanceof Error ? error.message : String(error),
              isBusy: false,
            });
        },
      );
    });
    return () => {
      isOld = true;
      stop();
    };
  }, [choices, version]);
  return state;
}
