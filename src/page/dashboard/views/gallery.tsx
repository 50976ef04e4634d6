import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { FilePage, ShownFile } from "../../../documents/page.js";
import { fileSize } from "../../../text/amounts.js";
import { counted } from "../../parts/amounts.js";
import { Dialog } from "../../parts/dialog.js";
import { Icon } from "../../parts/icon.js";
import { onKeys } from "../../parts/keys.js";
import { mediaKind } from "../../parts/medium.js";
import { visible } from "../../parts/visible.js";
import { useWindowing } from "../../parts/windowing.js";
import { Empty, Waiting } from "../parts/empty.js";
import { Medium, Thumbnail } from "../parts/media.js";
import { Time, useTime } from "../parts/time.js";
import { Turning } from "../parts/turning.js";
import { Clamped, Words } from "../parts/words.js";
import { link } from "../route.js";
import { useChanges } from "../server/answer.js";
import { get, withQuery } from "../server/client.js";
import { performNow, propose, useDoing } from "../server/commands.js";
import { inTurn } from "../server/in-turn.js";
import { after } from "../system.js";
import { redoOf } from "./item.js";
import { ZipButton } from "./run.js";

/** Every archived file, the newest first, in a grid that draws only what is in view. */
export function GalleryView({ query }: { query: URLSearchParams }) {
  const run = query.get("run");
  const [typed, setTyped] = useState("");
  const [text, setText] = useState("");
  useEffect(() => after(250, () => setText(typed.trim())), [typed]);
  const found = useFiles(text, run);
  const { isAll, error, more } = found;
  const [mark, setMark] = useState<Mark>("all");
  const files = found.files?.filter(marks[mark].shows) ?? null;
  const [open, setOpen] = useState<string | null>(null);
  const [isSelecting, setSelecting] = useState(false);
  const [selected, setSelected] = useState<ReadonlyMap<string, ShownFile>>(new Map());
  const toggle = (file: ShownFile) =>
    setSelected((before) => {
      const next = new Map(before);
      if (!next.delete(nameOf(file))) next.set(nameOf(file), file);
      return next;
    });
  const index = files?.findIndex((file) => nameOf(file) === open) ?? -1;
  return (
    <div class="view">
      <header class="head">
        <h1>
          Gallery{" "}
          {run !== null && (
            <span class="quiet">
              run {run} · <a href="#/gallery">all runs</a>
            </span>
          )}
        </h1>
        <div class="actions">
          <label class="search">
            <Icon name="search" />
            <span class="unseen">Search files</span>
            <input
              type="search"
              placeholder="Row id, prompt, model"
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
          <select
            aria-label="Show"
            value={mark}
            onChange={(event) => setMark(event.currentTarget.value as Mark)}
          >
            {Object.entries(marks).map(([name, { words }]) => (
              <option key={name} value={name}>
                {words}
              </option>
            ))}
          </select>
          <button
            type="button"
            aria-pressed={isSelecting}
            onClick={() => {
              setSelecting(!isSelecting);
              setSelected(new Map());
            }}
          >
            {isSelecting ? "Stop selecting" : "Select"}
          </button>
          {isSelecting && selected.size > 0 ? (
            <ZipButton
              body={{
                files: [...selected.values()].map(({ itemId, output }) => ({ item: itemId, number: output })),
              }}
              words={`Download ${counted(selected.size, "file")}`}
            />
          ) : (
            run !== null && <ZipButton body={{ run: Number(run) }} words="Download ZIP" />
          )}
        </div>
      </header>
      {files === null ? (
        <Waiting error={error} />
      ) : files.length === 0 ? (
        <Empty title={text === "" && mark === "all" ? "Nothing is archived yet" : "No file matches"} />
      ) : (
        <Grid
          files={files}
          isAll={isAll}
          more={more}
          selected={isSelecting ? selected : null}
          onPick={(file) => (isSelecting ? toggle(file) : setOpen(nameOf(file)))}
        />
      )}
      {files !== null && index >= 0 && (
        <LargeView
          files={files}
          index={index}
          onTurn={(to) => {
            const file = files[to];
            if (file !== undefined) setOpen(nameOf(file));
            if (to >= files.length - 4) more();
          }}
          onClose={() => setOpen(null)}
        />
      )}
    </div>
  );
}

type Mark = "all" | "picked" | "waiting" | "rejected" | "open";

/** Which files are shown. */
const marks: Readonly<Record<Mark, { words: string; shows(file: ShownFile): boolean }>> = {
  all: { words: "All files", shows: () => true },
  picked: { words: "Picked", shows: ({ picked }) => picked },
  waiting: { words: "Waiting for approval", shows: ({ approval }) => approval === "waiting" },
  rejected: { words: "Rejected", shows: ({ approval }) => approval === "rejected" },
  open: {
    words: "Neither picked nor rejected",
    shows: ({ picked, approval }) => !picked && approval !== "rejected",
  },
};

function nameOf({ itemId, output }: ShownFile): string {
  return `${itemId} ${output}`;
}

const pageFiles = 120;

/** How many files are read at once when those on the page are read again. */
const refreshedFiles = 500;

/**
 * The files that were read so far. All of them are read again when the workspace has changed: a mark may be new, and a
 * file of an earlier row may have been archived late.
 */
function useFiles(text: string, run: string | null) {
  const [state, setState] = useState<{
    files: ShownFile[] | null;
    older: number | null;
    error: Error | null;
  }>({
    files: null,
    older: null,
    error: null,
  });
  const isLoading = useRef(false);
  const load = useCallback(
    (before: number | null, limit: number, signal: AbortSignal) =>
      get<FilePage>(withQuery("/api/files", { text, run, before, limit }), signal),
    [text, run],
  );
  const abort = useRef(new AbortController());
  const failed = (error: unknown, signal: AbortSignal) => {
    if (!signal.aborted) setState((before) => ({ ...before, error: error as Error }));
  };
  useEffect(() => {
    abort.current = new AbortController();
    const { signal } = abort.current;
    setState({ files: null, older: null, error: null });
    load(null, pageFiles, signal).then(
      (page) => setState({ files: page.files, older: page.older, error: null }),
      (error: unknown) => failed(error, signal),
    );
    return () => abort.current.abort();
  }, [load]);
  const readAgain = async () => {
    const { signal } = abort.current;
    const last = state.files?.at(-1)?.itemId ?? null;
    const read =
      last === null
        ? load(null, pageFiles, signal)
        : filesUntil(last, (before) => load(before, refreshedFiles, signal));
    await read.then(
      (page) => setState({ files: page.files, older: page.older, error: null }),
      (error: unknown) => failed(error, signal),
    );
  };
  const latest = useRef(readAgain);
  latest.current = readAgain;
  // Many files take longer than the time between two changes.
  const refresh = useRef(inTurn(() => latest.current()));
  useChanges(refresh.current);
  const more = () => {
    if (isLoading.current || state.older === null) return;
    isLoading.current = true;
    const { signal } = abort.current;
    load(state.older, pageFiles, signal)
      .then((page) =>
        setState((before) => ({
          files: [...(before.files ?? []), ...page.files],
          older: page.older,
          error: null,
        })),
      )
      .catch((error: unknown) => failed(error, signal))
      .finally(() => {
        isLoading.current = false;
      });
  };
  return { ...state, isAll: state.older === null, more };
}

/** The files from the newest item to this one. */
async function filesUntil(
  last: number,
  load: (before: number | null) => Promise<FilePage>,
): Promise<FilePage> {
  const read: ShownFile[] = [];
  let older: number | null = null;
  do {
    const page: FilePage = await load(older);
    read.push(...page.files);
    older = page.older;
  } while (older !== null && older > last);
  const files = read.filter(({ itemId }) => itemId >= last);
  return { files, older: older === null && files.length === read.length ? null : last };
}

interface GridProps {
  files: ShownFile[];
  isAll: boolean;
  more: () => void;
  /** Null while nothing is being selected. */
  selected: ReadonlyMap<string, ShownFile> | null;
  onPick: (file: ShownFile) => void;
}

const gap = 14;

function Grid({ files, isAll, more, selected, onPick }: GridProps) {
  const [columns, setColumns] = useState(4);
  const [rowHeight, setRowHeight] = useState(280);
  const rows = Math.ceil(files.length / columns);
  const { list, first, last } = useWindowing<HTMLUListElement>(rows, rowHeight);
  useLayoutEffect(() => {
    const element = list.current;
    if (element === null) return;
    const measure = () => {
      const width = element.clientWidth;
      const fitting = Math.max(2, Math.floor((width + gap) / (220 + gap)));
      setColumns(fitting);
      setRowHeight(Math.round((width - gap * (fitting - 1)) / fitting) + 44 + gap);
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [list]);
  // More is asked for once the end is near.
  useEffect(() => {
    if (!isAll && last >= rows - 3) more();
  }, [last, rows, isAll]);
  const shown = files.slice(first * columns, last * columns);
  return (
    <ul
      ref={list}
      class="grid"
      aria-label="Archived files, the newest first"
      style={{
        height: `${rows * rowHeight}px`,
        paddingTop: `${first * rowHeight}px`,
        gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))`,
        gridAutoRows: `${rowHeight - gap}px`,
        gap: `${gap}px`,
      }}
    >
      {shown.map((file) => (
        <Tile
          key={nameOf(file)}
          file={file}
          isSelected={selected?.has(nameOf(file)) ?? null}
          onPick={onPick}
        />
      ))}
    </ul>
  );
}

interface TileProps {
  file: ShownFile;
  isSelected: boolean | null;
  onPick: (file: ShownFile) => void;
}

function Tile({ file, isSelected, onPick }: TileProps) {
  const { src, thumbnail, mime, rowId, job, prompt, picked, approval } = file;
  return (
    <li class={picked ? "tile picked" : "tile"}>
      <button
        type="button"
        aria-pressed={isSelected ?? undefined}
        aria-label={`${isSelected === null ? "Open" : "Select"} ${visible(rowId)}, file ${file.output}`}
        onClick={() => onPick(file)}
      >
        {mediaKind(mime) === "sound" ? (
          <span class="thumbnail spoken">
            <Icon name="sound" />
            <Words text={prompt ?? ""} />
          </span>
        ) : (
          <Thumbnail src={src} thumbnail={thumbnail} mime={mime} name="" />
        )}
        {isSelected !== null && <span class={isSelected ? "check on" : "check"} />}
        {(picked || approval === "waiting" || approval === "rejected") && (
          <span class="marks">
            {picked && <span class="mark-word picked">picked</span>}
            {approval === "waiting" && <span class="mark-word">waits</span>}
            {approval === "rejected" && <span class="mark-word rejected">rejected</span>}
          </span>
        )}
        <span class="tile-name">
          <Words text={rowId} />
          <span class="quiet">
            <Words text={job} />
          </span>
        </span>
      </button>
    </li>
  );
}

interface LargeProps {
  files: ShownFile[];
  index: number;
  onTurn: (to: number) => void;
  onClose: () => void;
}

function LargeView({ files, index, onTurn, onClose }: LargeProps) {
  const now = useTime();
  const file = files[index];
  const { proposal } = useDoing();
  const turn = (by: number) => {
    if (index + by >= 0 && index + by < files.length) onTurn(index + by);
  };
  const pick = () => {
    if (file !== undefined) void performNow({ do: file.picked ? "unpick" : "pick", items: [file.name] });
  };
  useLayoutEffect(() => {
    if (proposal !== null) return;
    return onKeys({ ArrowLeft: () => turn(-1), ArrowRight: () => turn(1), p: pick }, { inDialogs: true });
  });
  if (file === undefined) return null;
  const { rowId, prompt, job, run, model, mime, bytes, savedAt, picked, src, itemId } = file;
  return (
    <Dialog title={visible(rowId)} onClose={onClose} class="large">
      <div class="large-view">
        <Turning index={index} count={files.length} onTurn={turn}>
          <div class="desk-files">
            <Medium src={src} mime={mime} name={visible(rowId)} />
          </div>
        </Turning>
        <div class="large-side">
          {prompt !== null && <Clamped text={prompt} />}
          <dl class="facts small">
            <div>
              <dt>run</dt>
              <dd>
                <a href={link("runs", run)}>
                  <Words text={job} /> run {run}
                </a>
              </dd>
            </div>
            <div>
              <dt>model</dt>
              <dd>
                <Words text={model} />
              </dd>
            </div>
            <div>
              <dt>file</dt>
              <dd>
                <Words text={file.file} />
              </dd>
            </div>
            <div>
              <dt>size</dt>
              <dd>
                {fileSize(bytes)}, {mime}
              </dd>
            </div>
            <div>
              <dt>archived</dt>
              <dd>
                <Time at={savedAt} now={now} />
              </dd>
            </div>
          </dl>
          <div class="actions">
            <button type="button" onClick={pick} aria-pressed={picked}>
              {picked ? "Picked" : "Pick"} <kbd>P</kbd>
            </button>
            {file.approval === "waiting" && (
              <button type="button" onClick={() => void performNow({ do: "reject", items: [file.name] })}>
                Reject
              </button>
            )}
            <button type="button" onClick={() => propose(redoOf(rowId, file.name))}>
              Make it again…
            </button>
            <a class="button" href={src} download={file.file.split("/").at(-1)}>
              <Icon name="download" /> Download
            </a>
            <a class="button" href={link("items", itemId)}>
              History
            </a>
          </div>
        </div>
      </div>
    </Dialog>
  );
}
