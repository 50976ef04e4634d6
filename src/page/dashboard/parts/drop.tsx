import { useEffect, useState } from "preact/hooks";
import { openDropped } from "../server/sheets.js";

/** A sheet may be dropped anywhere on the page. */
export function DropAnywhere() {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    const holdsFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") === true;
    const over = (event: DragEvent) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent) => {
      setOver(false);
      if (!holdsFiles(event)) return;
      event.preventDefault();
      const isFolder = event.dataTransfer?.items[0]?.webkitGetAsEntry()?.isDirectory ?? false;
      void openDropped(event.dataTransfer?.files, { isFolder });
    };
    document.addEventListener("dragover", over);
    document.addEventListener("dragleave", leave);
    document.addEventListener("drop", drop);
    return () => {
      document.removeEventListener("dragover", over);
      document.removeEventListener("dragleave", leave);
      document.removeEventListener("drop", drop);
    };
  }, []);
  return isOver ? <div class="drop-over">Drop the sheet to see its rows and its price</div> : null;
}
