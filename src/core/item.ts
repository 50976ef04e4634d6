/**
 * An item's life: its states and the events that change them. Nothing else in the program changes a state, and the
 * database, which holds the same table, refuses any other step; the diagram in docs/reference.md is drawn from it.
 *
 * The rule behind the table: a paid request is never repeated unless it is on record that it was not sent, was
 * refused, was not charged, or failed for 0 credits, or a person said so. So "no answer" has a state of its own
 * (`unknown`), from which only evidence leads back to `planned`.
 */
export const transitions = {
  blocked: { released: "planned", dropped: "dropped" },
  planned: { intended: "submitting", waits: "blocked", supplied: "archived", dropped: "dropped" },
  submitting: {
    accepted: "processing",
    not_sent: "planned",
    refused: "planned",
    rejected: "failed",
    unanswered: "unknown",
  },
  unknown: { not_charged: "planned", given_up: "failed", charged: "held", undecided: "held" },
  held: { adopted: "processing", resubmit: "planned", refetch: "ready", skipped: "dropped" },
  processing: { completed: "ready", task_failed: "failed", window_passed: "overdue" },
  overdue: { completed: "ready", task_failed: "failed" },
  ready: { saved: "archived", url_expired: "ready", unfetchable: "held" },
  failed: { retry: "planned", supplied: "archived" },
  archived: { file_lost: "ready" },
  dropped: { returned: "planned" },
} as const;

export type ItemState = keyof typeof transitions;
export type ItemEvent = { [State in ItemState]: keyof (typeof transitions)[State] }[ItemState];

export const itemStates = Object.keys(transitions) as ItemState[];
export const itemEvents = [
  ...new Set(itemStates.flatMap((state) => Object.keys(transitions[state]))),
] as ItemEvent[];

/** Paid for, or maybe, and not collected yet. */
export const uncollectedStates: readonly ItemState[] = [
  "submitting",
  "unknown",
  "processing",
  "overdue",
  "ready",
];

/** Paid for, or maybe: not to be bought again. */
export const paidStates: readonly ItemState[] = [...uncollectedStates, "held", "archived"];

export function isPaid(item: { state: ItemState } | null): boolean {
  return item !== null && paidStates.includes(item.state);
}

/** How many of the counted items a run has to make: all but the dropped ones. */
export function wantedItems(counts: Readonly<Partial<Record<ItemState, number>>>): number {
  return Object.values(counts).reduce((sum, number) => sum + number, 0) - (counts.dropped ?? 0);
}

export interface Transition {
  from: ItemState;
  event: ItemEvent;
  to: ItemState;
}

/** Every legal transition. The docs draw their diagram from it, and the database gets its list from it. */
export const transitionList: readonly Transition[] = itemStates.flatMap((from) =>
  Object.entries(transitions[from]).map(([event, to]) => ({ from, event: event as ItemEvent, to })),
);

export class IllegalTransition extends Error {
  override readonly name = "IllegalTransition";
  constructor(
    readonly from: ItemState,
    readonly event: ItemEvent,
  ) {
    const legal = Object.keys(transitions[from]).join(", ");
    super(`an item that is ${from} cannot be ${event}; expected one of: ${legal}`);
  }
}

/** The state that follows. Throws IllegalTransition when the event cannot happen in that state. */
export function follow(from: ItemState, event: ItemEvent): ItemState {
  const to = (transitions[from] as Partial<Record<ItemEvent, ItemState>>)[event];
  if (to === undefined) throw new IllegalTransition(from, event);
  return to;
}
