import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Trouble } from "./parts/empty.js";

/** A view whose code is loaded when it is shown for the first time. */
export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let known: ComponentType<Props> | null = null;
  return function Later(props: Props) {
    const [View, setView] = useState<ComponentType<Props> | null>(() => known);
    const [error, setError] = useState<Error | null>(null);
    useEffect(() => {
      if (known !== null) return;
      load().then(
        (loaded) => {
          known = loaded;
          setView(() => loaded);
        },
        () => setError(new Error("The page could not load this view. Load the page again.")),
      );
    }, []);
    if (error !== null) return <Trouble error={error} />;
    return View === null ? <p class="starting">Reading…</p> : <View {...props} />;
  };
}
