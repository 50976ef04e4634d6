/** `cup`, `cup-2`, `cup-3`: the first copy keeps the plain name, so that adding copies renames nothing. */
export function copyName(name: string, copy: number): string {
  return copy === 1 ? name : `${name}-${copy}`;
}

/** The output as wanted, without a media file's extension: the content decides which one it gets. */
export function outputName(output: string): string {
  return output.replace(/\.(png|jpe?g|webp|gif|avif|mp4|webm|mov|mp3|wav|ogg|m4a|flac)$/i, "");
}

/** A name with what a combination of the job adds to it. */
export function labelled(name: string, label: string): string {
  return label === "" ? name : `${name}-${label}`;
}
