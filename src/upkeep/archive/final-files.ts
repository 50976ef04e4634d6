/**
 * Of each item of a sheet the take that a person has picked, else the newest approved one, else the first that has a
 * file and was not made of a rejected take; never one that is rejected or waits for approval.
 */
export interface FinalSet {
  /** `path` is absolute, `name` what it is called without the number of its variant. */
  files: { row: number; rowId: string; path: string; name: string; prompt: string | null }[];
  /** Items without a final file, and why, for people. */
  missing: { row: number; rowId: string; reason: string }[];
  /** Which files were made of another take than the set has, and what to do, for people; null if none was. */
  mixed: string | null;
}
