import { html } from "hono/html";
import type { Piece } from "./document.js";
import type { ShownTask, TaskPage } from "./recent-tasks.js";
import { ago, counted, stamp } from "./wording.js";

/** The newest tasks with what came of them. `older` is the address of the page with those before. */
export function tasksPanel({ tasks }: TaskPage, older: string | null, now: number): Piece {
  const cards = tasks.map((task) => taskCard(task, now));
  return html`<section class="panel" aria-labelledby="tasks">
<div class="head"><h2 id="tasks">Recent tasks</h2></div>
${
  tasks.length > 0
    ? html`<ul class="tasks">${cards}</ul>`
    : html`<p class="empty">No tasks yet. What is generated with one of the keys above appears here.</p>`
}
${older === null ? "" : html`<p class="more"><a href="${older}">Older tasks</a></p>`}
</section>`;
}

function taskCard(task: ShownTask, now: number): Piece {
  const at = stamp(task.createdAt);
  return html`<li class="task" data-task="${task.id}">
<div class="preview ${task.category}">${preview(task)}</div>
<div class="about">
<p class="prompt" title="${task.prompt ?? ""}">${task.prompt ?? html`<span class="quiet">no prompt</span>`}</p>
<p class="quiet"><span class="model">${task.model}</span> · ${counted(task.credits, "credit")} · <time datetime="${at}" title="${at}">${ago(task.createdAt, now)}</time></p>
${task.params.length > 0 ? params(task) : ""}
</div>
</li>`;
}

function params(task: ShownTask): Piece {
  const rows = task.params.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`);
  return html`<details><summary>Details</summary><dl><dt>task</dt><dd>${task.id}</dd>${rows}</dl></details>`;
}

function preview(task: ShownTask): Piece | Piece[] {
  if (task.status === "processing") return html`<p class="waiting">processing</p>`;
  if (task.status === "failed")
    return html`<p class="failed"><strong>failed</strong> ${task.error ?? ""}</p>`;
  return task.outputs.map((path, index) => output(task, path, index + 1));
}

function output({ category, prompt, model }: ShownTask, path: string, number: number): Piece {
  const label = `Output ${number} of ${model}`;
  if (category === "video") {
    return html`<video controls playsinline preload="metadata" src="${path}" aria-label="${label}"></video>`;
  }
  if (category === "audio") {
    return html`<audio controls preload="metadata" src="${path}" aria-label="${label}"></audio>`;
  }
  return html`<a href="${path}"><img src="${path}" alt="${prompt ?? label}" loading="lazy"></a>`;
}
