import type { FilePage } from "../../../dashboard/shapes.js";
import { visible } from "../../parts/visible.js";
import { link } from "../route.js";
import { useAnswer } from "../server/answer.js";
import { withQuery } from "../server/client.js";
import { Thumbnail } from "./media.js";

const filesMax = 16;

/** The files that were archived last, as many as fit on a line. */
export function NewestFiles({ run = null }: { run?: number | null }) {
  const { data } = useAnswer<FilePage>(withQuery("/api/files", { run, limit: filesMax }));
  if (data === null || data.files.length === 0) return null;
  return (
    <section class="newest" aria-label="Newest files">
      {data.files.map(({ itemId, number, src, thumbnail, mime, rowId }) => (
        <a key={`${itemId} ${number}`} href={link("items", itemId)}>
          <Thumbnail src={src} thumbnail={thumbnail} mime={mime} name="" />
          <span class="unseen">{visible(rowId)}</span>
        </a>
      ))}
    </section>
  );
}
