import type { ComponentChildren } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { Dialog } from "../parts/dialog.js";
import { stopSound } from "./media/player.js";
import type { GalleryView } from "./view.js";

interface OverlayProps {
  view: GalleryView;
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  class: string;
  hasOwnHead?: boolean;
  shown?: unknown;
}

/** A dialog over the cards. */
export function Overlay({ view, children, ...dialog }: OverlayProps) {
  useLayoutEffect(stopSound, [dialog.shown]);
  return (
    <Dialog {...dialog}>
      {children}
      {/* What lies below a dialog cannot be seen. */}
      <Said view={view} />
    </Dialog>
  );
}

/** A line that goes away by itself. */
export function Said({ view }: { view: GalleryView }) {
  const { said } = view;
  return (
    <div class="toasts" role="status">
      {said !== null && (
        <div key={said.number} class="toast" onAnimationEnd={() => view.update({ said: null })}>
          {said.text}
        </div>
      )}
    </div>
  );
}
