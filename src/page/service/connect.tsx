/** Where programs find the service, and the key that everybody has. */
export function Connect({ publicKey }: { publicKey: string | null }) {
  return (
    <section class="panel" aria-labelledby="connect">
      <div class="head">
        <h2 id="connect">Connect</h2>
        <a href="/docs">API reference</a>
      </div>
      <dl class="connect">
        <dt>Base URL</dt>
        <dd>
          <code>{location.origin}</code>
        </dd>
        <dt>API key</dt>
        <dd>{publicKey === null ? "one of the keys below" : <code>{publicKey}</code>}</dd>
      </dl>
    </section>
  );
}

/** What stands where the tasks will be. */
export function FirstCommand({ command }: { command: string }) {
  return (
    <div class="empty">
      <p>No tasks yet. Paste this into a terminal, then reload the page:</p>
      <pre class="command">{command}</pre>
      <p class="quiet">
        More in the <a href="/docs">API reference</a>.
      </p>
    </div>
  );
}
