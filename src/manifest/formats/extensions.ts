/** How a file is read. */
export type ManifestFormat = "csv" | "workbook" | "lines" | "JSON" | "YAML" | "prompts";

/** What the extensions of files say of their format. A workbook is known by its first bytes, whatever its name. */
export const formatsByExtension: Readonly<Record<string, ManifestFormat>> = {
  ".csv": "csv",
  ".tsv": "csv",
  ".xlsx": "workbook",
  ".json": "JSON",
  ".jsonl": "lines",
  ".ndjson": "lines",
  ".yaml": "YAML",
  ".yml": "YAML",
  // Only if it looks like prompts; else it is read as what its beginning shows.
  ".txt": "prompts",
};

/** Extensions of files that are taken for manifests by their name alone. */
export const manifestExtensions = Object.keys(formatsByExtension).filter(
  (extension) => formatsByExtension[extension] !== "prompts",
);
