import { useEffect, useState } from "preact/hooks";
import { RefusedRequest } from "./client.js";

interface Attempts<Key> {
  /** The key that was just made; nothing shows its value later. */
  made: Key | null;
  showMade: (key: Key) => void;
  /** Why the last change was refused, and what it was about. */
  refused: { about: string; message: string } | null;
  /** Does what a person asks for, and shows why not, and how the service then stands. Tells whether it was done. */
  attempt: (about: string, act: () => Promise<unknown>) => Promise<boolean>;
}

/** The changes that a person makes on the page of a service such as "sandbox"; `load` gets what is shown anew. */
export function useAttempts<Key>(service: string, load: () => Promise<void>): Attempts<Key> {
  const [made, setMade] = useState<Key | null>(null);
  const [refused, setRefused] = useState<Attempts<Key>["refused"]>(null);
  useEffect(() => {
    // A page that the browser keeps must not show a new key a second time.
    const forget = () => setMade(null);
    addEventListener("pagehide", forget);
    return () => removeEventListener("pagehide", forget);
  }, []);
  const attempt = async (about: string, act: () => Promise<unknown>) => {
    setRefused(null);
    setMade(null);
    try {
      await act();
    } catch (error) {
      const message = error instanceof RefusedRequest ? error.message : `The ${service} does not answer.`;
      setRefused({ about, message });
      return false;
    }
    await load();
    return true;
  };
  return { made, showMade: (key) => setMade(key), refused, attempt };
}
