/**
 * The origins of all addresses that stand in a value, also within templates. One whose host is itself made of names is not among
 * them, so that a request to it is refused.
 */
export function originsIn(value: unknown): string[] {
  if (typeof value === "string")
    return [...value.matchAll(/https?:\/\/[^\s/"'\\?#{}|]+/g)].flatMap(([address]) =>
      URL.canParse(address) ? [new URL(address).origin] : [],
    );
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(originsIn) : [];
}
