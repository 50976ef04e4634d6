import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { after } from "../system.js";
import { get } from "./client.js";
import { inTurn } from "./in-turn.js";
import { currentStanding, onConnection } from "./standing.js";

/** Answers of the server, requested again when the workspace has changed: at most once a second. */

const throttleMs = 1_000;

/** Calls back when the workspace has changed, or when the server is there again; never if `ms` is null. */
export function useChanges(then: () => void, ms: number | null = throttleMs): void {
  const latest = useRef(then);
  latest.current = then;
  useEffect(() => {
    if (ms === null) return;
    let seen = currentStanding()?.change;
    let stop: (() => void) | null = null;
    const stopListening = onConnection(({ standing, state }) => {
      // Whatever was asked for meanwhile has had no answer.
      if (state === "lost") seen = undefined;
      if (state !== "live" || standing?.change === seen) return;
      seen = standing?.change;
      stop ??= after(ms, () => {
        stop = null;
        latest.current();
      });
    });
    return () => {
      stopListening();
      stop?.();
    };
  }, [ms]);
}

export interface ReadAnswer<T> {
  /** Null until there is an answer; the last answer while it is requested again. */
  data: T | null;
  error: Error | null;
  again: () => void;
}

/**
 * The answer to a GET of this path; null requests nothing. It is requested again at most every `ms`, or never, and not
 * before the request before it has its answer: one that takes longer than `ms` would never have any.
 */
export function useAnswer<T>(path: string | null, ms: number | null = throttleMs): ReadAnswer<T> {
  const [state, setState] = useState<{ path: string | null; data: T | null; error: Error | null }>({
    path: null,
    data: null,
    error: null,
  });
  const ask = useRef<() => void>(() => undefined);
  const again = useCallback(() => ask.current(), []);
  useChanges(again, ms);
  useEffect(() => {
    const abort = new AbortController();
    const { signal } = abort;
    ask.current = inTurn(async () => {
      if (path === null || signal.aborted) return;
      await get<T>(path, signal).then(
        (data) => setState({ path, data, error: null }),
        (error: unknown) => {
          if (signal.aborted) return;
          const known = error instanceof Error ? error : new Error(String(error));
          setState((before) => ({ path, data: before.path === path ? before.data : null, error: known }));
        },
      );
    });
    ask.current();
    return () => abort.abort();
  }, [path]);
  return state.path === path
    ? { data: state.data, error: state.error, again }
    : { data: null, error: null, again };
}

export interface RowWindow<T> {
  /** The wanted rows; undefined for rows that are not loaded yet. */
  row: (index: number) => T | undefined;
  total: number | null;
  error: Error | null;
  again: () => void;
}

const pageRows = 100;

/**
 * The rows from `first` up to `last` of a list that may have a hundred thousand, read page by page. `pathOf` is asked
 * with `from` and `limit`; `key` says which list it is.
 */
export function useRows<T>(
  key: string,
  first: number,
  last: number,
  load: (from: number, limit: number, signal: AbortSignal) => Promise<{ rows: T[]; total: number }>,
  ms: number | null = throttleMs,
): RowWindow<T> {
  const pages = useRef(new Map<number, { rows: T[]; turn: number }>());
  const loading = useRef(new Set<number>());
  const abort = useRef(new AbortController());
  const [shown, setShown] = useState<{
    key: string;
    total: number | null;
    error: Error | null;
    version: number;
  }>({
    key,
    total: null,
    error: null,
    version: 0,
  });
  const [turn, setTurn] = useState(0);
  const again = useCallback(() => setTurn((number) => number + 1), []);
  useChanges(again, ms);
  const latest = useRef(load);
  latest.current = load;

  // Another list starts anew.
  useEffect(() => {
    abort.current = new AbortController();
    pages.current = new Map();
    loading.current = new Set();
    setShown((before) => ({ ...before, key, error: null, version: before.version + 1 }));
    return () => abort.current.abort();
  }, [key]);

  // A new version may have made room for other pages.
  useEffect(() => {
    const { signal } = abort.current;
    const from = Math.max(0, Math.floor(first / pageRows));
    const to = Math.max(from, Math.floor(Math.max(first, last - 1) / pageRows));
    for (let page = from; page <= to; page++) {
      const known = pages.current.get(page);
      if (loading.current.has(page) || known?.turn === turn) continue;
      loading.current.add(page);
      latest
        .current(page * pageRows, pageRows, signal)
        .then(({ rows, total }) => {
          loading.current.delete(page);
          pages.current.set(page, { rows, turn });
          setShown((before) => ({ key, total, error: null, version: before.version + 1 }));
        })
        .catch((error: unknown) => {
          if (signal.aborted) return;
          loading.current.delete(page);
          pages.current.set(page, { rows: known?.rows ?? [], turn });
          const shownError = error instanceof Error ? error : new Error(String(error));
          setShown((before) => ({ ...before, key, error: shownError, version: before.version + 1 }));
        });
    }
  }, [key, first, last, turn, shown.version]);

  return {
    row: (index) => pages.current.get(Math.floor(index / pageRows))?.rows[index % pageRows],
    total: shown.key === key ? shown.total : null,
    error: shown.error,
    again,
  };
}
