/**
 * What the command uses of undici, in place of its index: that loads fetch, WebSockets, caches and mocks as well, which
 * are half of its code.
 */
const Dispatcher = require("undici/lib/dispatcher/dispatcher.js");
const { request } = require("undici/lib/api/index.js");
const Agent = require("undici/lib/dispatcher/agent.js");
const errors = require("undici/lib/core/errors.js");

Object.assign(Dispatcher.prototype, { request });

module.exports = { Agent, errors };
