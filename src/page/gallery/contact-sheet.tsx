import type { GalleryCard } from "../../upkeep/archive/gallery.js";
import { brief, visible } from "../parts/visible.js";
import { labelOf } from "./choosing.js";
import type { Facet } from "./facets.js";
import { Preview } from "./media/preview.js";
import type { GalleryView } from "./view.js";

/** A cell shows this many files, and counts the rest. */
const cellMax = 8;

/** The cards by what differs from column to column, and from row to row. */
export function ContactSheet({ view }: { view: GalleryView }) {
  const { x, y } = view.axes;
  return (
    <div class="axes">
      <div class="axes-choice">
        <AxisChoice view={view} label="Across" axis={x} onChange={(facet) => view.setAxes(facet, y)} />
        <AxisChoice view={view} label="Down" axis={y} onChange={(facet) => view.setAxes(x, facet)} />
        <button type="button" class="link" onClick={() => view.setAxes(y, x)}>
          Swap
        </button>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
      <section class="axes-table" tabIndex={0} aria-label="Contact sheet">
        {x !== null && y !== null && <SheetTable view={view} x={x} y={y} />}
      </section>
    </div>
  );
}

interface AxisProps {
  view: GalleryView;
  label: string;
  axis: Facet | null;
  onChange: (facet: Facet | null) => void;
}

function AxisChoice({ view, label, axis, onChange }: AxisProps) {
  const { facets } = view.axes;
  return (
    <label class="facet">
      <span>{label}</span>
      <select
        value={axis?.key}
        onChange={({ currentTarget: { value } }) => onChange(facets.find(({ key }) => key === value) ?? axis)}
      >
        {facets.map((facet) => (
          <option key={facet.key} value={facet.key}>
            {brief(facet.label, 40)}
          </option>
        ))}
      </select>
    </label>
  );
}

function SheetTable({ view, x, y }: { view: GalleryView; x: Facet; y: Facet }) {
  const cells = cellsOf(view.shown, x, y);
  const columns = x.values.filter((value) => [...cells.values()].some((row) => row.has(value)));
  const rows = y.values.filter((value) => cells.has(value));
  if (rows.length === 0) return <p class="nothing">No file has both.</p>;
  return (
    <table>
      <thead>
        <tr>
          <td class="corner">
            <span dir="auto">{`${brief(y.label, 24)} ↓  ${brief(x.label, 24)} →`}</span>
          </td>
          {columns.map((value) => (
            <Head key={value} value={value} scope="col" />
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((down) => (
          <tr key={down}>
            <Head value={down} scope="row" />
            {columns.map((across) => (
              <td key={across}>
                <Cell
                  view={view}
                  cards={cells.get(down)?.get(across) ?? []}
                  // Rows of the sheet are no facet of the filter, so on that axis nothing is narrowed.
                  onMore={() =>
                    view.narrowTo(
                      new Map([
                        [x.key, across],
                        [y.key, down],
                      ]),
                    )
                  }
                />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** By row, then by column. */
function cellsOf(cards: readonly GalleryCard[], x: Facet, y: Facet): Map<string, Map<string, GalleryCard[]>> {
  const cells = new Map<string, Map<string, GalleryCard[]>>();
  for (const card of cards) {
    const across = x.of(card);
    const down = y.of(card);
    if (across === null || down === null) continue;
    const row = cells.get(down) ?? new Map<string, GalleryCard[]>();
    cells.set(down, row);
    const cell = row.get(across) ?? [];
    row.set(across, cell);
    cell.push(card);
  }
  return cells;
}

function Head({ value, scope }: { value: string; scope: "col" | "row" }) {
  return (
    <th scope={scope} dir="auto" title={visible(value.slice(0, 300))}>
      <span>{brief(value, 60) || "(empty)"}</span>
    </th>
  );
}

interface CellProps {
  view: GalleryView;
  cards: readonly GalleryCard[];
  onMore: () => void;
}

function Cell({ view, cards, onMore }: CellProps) {
  const shown = cards.slice(0, cards.length > cellMax + 1 ? cellMax : cellMax + 1);
  const rest = cards.length - shown.length;
  return (
    <div class={`cell of-${Math.min(4, shown.length)}`}>
      {shown.map((card) => (
        <button
          type="button"
          key={view.numberOf(card)}
          class={`flat small ${view.choices.choiceFor(card) ?? ""}`}
          aria-label={labelOf(view, card)}
          onClick={() => view.open(card)}
        >
          <Preview card={card} />
        </button>
      ))}
      {rest > 0 && (
        <button type="button" class="flat more" onClick={onMore}>
          {rest} more
        </button>
      )}
    </div>
  );
}
