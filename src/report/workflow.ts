import { inCredits } from "../core/money.js";
import type { WorkflowStep } from "../plan/workflow.js";
import { count } from "../text/amounts.js";
import { paint } from "../text/table.js";
import { cutToWidth, shortText, terminalText, textWidth } from "../text/terminal.js";
import { plainStyle, type TerminalStyle } from "../text/terminal-style.js";

/** How much of a name is shown, as characters. */
const nameCharactersMax = 40;
/** Branches are indented no further than this: there has to be room for the text. */
const branchesMax = 8;
const indent = 4;

/**
 * The steps of a plan as a tree for the terminal. Each step appears once, below the last step whose outputs it uses.
 */
export function workflowText(steps: readonly WorkflowStep[], style: TerminalStyle = plainStyle): string {
  const children = childrenOf(steps);
  const lines: string[] = [];
  const draw = (step: WorkflowStep, first: string, rest: string, level: number) => {
    const below = children.get(step.name) ?? [];
    // A bar leads from the first line of a step to the steps below it.
    const bar = below.length > 0 && level < branchesMax ? "│" : " ";
    lines.push(...stepLines(step, { first, rest: `${rest}${bar.padEnd(indent)}` }, style));
    for (const [index, child] of below.entries()) {
      const isLast = index === below.length - 1;
      if (level >= branchesMax) draw(child, first, rest, level);
      else draw(child, `${rest}${isLast ? "└─ " : "├─ "}`, `${rest}${isLast ? "   " : "│  "}`, level + 1);
    }
  };
  for (const root of children.get(null) ?? []) draw(root, "", "", 0);
  return lines.join("\n");
}

/** Which steps are drawn below which; null for those at the left. A step never stands above one that is drawn before it. */
function childrenOf(steps: readonly WorkflowStep[]): Map<string | null, WorkflowStep[]> {
  const children = new Map<string | null, WorkflowStep[]>();
  for (const [index, step] of steps.entries()) {
    const above = steps.slice(0, index).findLast(({ next }) => next.includes(step.name));
    const name = above?.name ?? null;
    children.set(name, [...(children.get(name) ?? []), step]);
  }
  return children;
}

function stepLines(
  step: WorkflowStep,
  { first, rest }: { first: string; rest: string },
  style: TerminalStyle,
): string[] {
  const room = (style.width ?? Number.POSITIVE_INFINITY) - textWidth(rest);
  const name = cutToWidth(shown(step.name), room);
  const facts = factsOf(step).map(terminalText);
  const next = step.next.map(shown);
  // Lines are broken between these.
  const pieces = [
    ...facts.map((fact, index) => (index < facts.length - 1 ? `${fact} ·` : fact)),
    ...next.map((to, index) => `${index === 0 ? "→ " : ""}${to}${index < next.length - 1 ? "," : ""}`),
  ];
  const lines: string[] = [];
  let line = name;
  let gap = "  ";
  for (const piece of pieces) {
    if (textWidth(line) + gap.length + textWidth(piece) > room) {
      lines.push(line);
      line = cutToWidth(piece, room);
    } else line += `${gap}${piece}`;
    gap = " ";
  }
  return [...lines, line].map((text, index) =>
    index === 0
      ? `${first}${paint(name, "strong", style)}${text.slice(name.length)}`
      : `${rest}${text}`.trimEnd(),
  );
}

/** The steps of a plan as a Mermaid flowchart, which GitHub and others draw in Markdown. */
export function workflowDiagram(steps: readonly WorkflowStep[]): string {
  const ids = new Map(steps.map(({ name }, index) => [name, `s${index + 1}`]));
  const boxes = steps.map((step) => {
    const label = [shown(step.name), ...factsOf(step)].map(diagramText).join("<br>");
    return `  ${ids.get(step.name)}["${label}"]`;
  });
  const arrows = steps.flatMap(({ name, next }) => next.map((to) => `  ${ids.get(name)} --> ${ids.get(to)}`));
  return ["flowchart LR", ...boxes, ...arrows].join("\n");
}

/** Mermaid reads quotes, brackets and Markdown in a label, so anything but plain text is written as character codes. */
function diagramText(text: string): string {
  return shortText(text, nameCharactersMax).replace(
    /[^\p{L}\p{M}\p{N} ·._-]|[.-](?= |$)/gu,
    (character) => `#${character.codePointAt(0)};`,
  );
}

function shown(name: string): string {
  return shortText(name, nameCharactersMax);
}

function factsOf({ name, step, model, items, credits, states }: WorkflowStep): string[] {
  const known = Object.entries(states);
  const shownStates = known.map(([state, number]) => `${number} ${state}`).join(", ");
  return [
    count(items, "item"),
    inCredits(credits),
    ...(step === null || name.endsWith(`(${model})`) ? [] : [model]),
    ...(known.every(([state]) => state === "new") ? [] : [shownStates]),
  ];
}
