import { visible } from "../visible.js";

/** The value of a key that was just made, which nothing shows later. */
export function MadeKey({ name, value }: { name: string; value: string }) {
  return (
    <div class="made" role="status">
      <p>
        <strong>Your new key “{visible(name)}”.</strong> Copy it now: it is shown only this once.
      </p>
      <code class="value" data-key>
        {value}
      </code>
      <p class="quiet">A click selects all of it.</p>
    </div>
  );
}

/** Revokes a key, once it is confirmed. */
export function RevokeKey({ name, revoke }: { name: string; revoke: () => Promise<unknown> }) {
  return (
    <details>
      <summary>Revoke</summary>
      <div class="confirm">
        <p>Programs that use “{visible(name)}” will be refused from now on. This cannot be undone.</p>
        <button type="button" class="grave" onClick={() => void revoke()}>
          Revoke this key
        </button>
      </div>
    </details>
  );
}
