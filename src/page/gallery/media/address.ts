/** A relative address: names may hold `#`, `?`, `%` and look like a scheme. */
export function address(path: string): string {
  return `./${path.split("/").map(segment).join("/")}`;
}

function segment(name: string): string {
  // Half a surrogate pair has no address; such a file cannot be on a disk either.
  return encodeURIComponent(name.replace(/\p{Surrogate}/gu, "\ufffd"));
}
