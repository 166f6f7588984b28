'use strict';
// Driver of a persistent node interpreter: calls come in on fd 3, answers go out on fd 4.
// Code runs through V8's own REPL mode (inspector, in-process): top-level await, const/let/class kept and redeclarable.
const fs = require('fs'), vm = require('vm'), util = require('util'), path = require('path');
const { Session } = require('inspector');
const { Writable } = require('stream');
const { createRequire } = require('module');

// User code may patch or remove any global: the driver keeps its own.
const { process, Buffer, Object, String, Number, Atomics, Int32Array, SharedArrayBuffer, Set, Error, BigInt, setImmediate, setInterval, clearInterval, JSON, Array } = globalThis;
const reallyExit = process.reallyExit.bind(process);
const LOST = 70;  // exit code: the driver cannot go on (EX_SOFTWARE)
const uncurry = Function.prototype.call.bind(Function.prototype.bind, Function.prototype.call);
const latin1 = uncurry(Buffer.prototype.latin1Slice), utf8 = uncurry(Buffer.prototype.utf8Slice), part = uncurry(Buffer.prototype.subarray);
const bufferFrom = Buffer.from, bufferConcat = Buffer.concat, padStart = uncurry(String.prototype.padStart), isHeader = (h) => test(HEADER, h);
const HEADER = /^[xvnaXVNAO] [0-9]{10} [0-9]{4}\n$/, test = uncurry(RegExp.prototype.test);
const { defineProperty, getOwnPropertyDescriptor, getOwnPropertyNames, getPrototypeOf } = Object, uncork = Writable.prototype.uncork;
const tick = process._tickCallback;
const emitter = { on: process.on, listeners: process.listeners, removeAllListeners: process.removeAllListeners, listenerCount: process.listenerCount };
let nonce = '';  // of the exec under way: an answer without it is not believed

const MAX_VALUE = 100000, MAX_STATE = 256 << 10, MAX_NAMES = 500;
const write = fs.writeSync, fstat = fs.fstatSync, open = fs.openSync, close = fs.closeSync;  // user code may patch fs
const { stringify } = JSON, { inspect } = util;
let cwd = process.cwd(), env = '', count = 0;
let call = null;  // the one under way
const imported = new Set();

function writeAll(fd, data) {
  let at = 0;
  while (at < data.length) {
    try { at += write(fd, data, at); } catch (e) {
      if (e.code !== 'EAGAIN') throw e;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

function send(kind, text) {
  try {
    const body = bufferFrom(text), size = padStart(`${body.length}`, 10, '0');
    if (size.length !== 10) reallyExit(LOST);
    writeAll(4, bufferConcat([bufferFrom(`${nonce}${kind} ${size}\n`), body]));
  } catch { reallyExit(LOST); }  // our descriptor is closed: the exec is lost, which is better than one that never ends
}
// Code can break anything the driver uses: then the exec is lost.
const orLost = (f) => (...a) => { try { return f(...a); } catch { reallyExit(LOST); } };

const wellFormed = (s) => s.replace(/[\ud800-\udfff]/gu, '\ufffd');  // lone surrogates are no valid JSON for everybody
const quote = (s) => stringify(wellFormed(String(s)));

// ---- streams: synchronous, so everything is out before the result and at process.exit
function output(fd) {
  const s = new Writable({
    decodeStrings: true,
    write(chunk, enc, done) { try { writeAll(isLate() ? late[fd] : fd, chunk); } catch { /* closed by the user or nobody reads */ } done(); },
    destroy(err, done) { s._writableState.destroyed = false; done(); },
  });
  s.fd = fd;
  s._type = 'pipe';
  s._isStdio = true;
  s.end = s.destroySoon = s.destroy = () => s;  // cannot be closed, as in node itself
  return s;
}
const std = [null, output(1), output(2)];
const stdMethods = std.map((s) => s && { write: s.write, _write: s._write, _writev: s._writev, emit: s.emit, cork: s.cork });
const identity = (fd) => { try { const s = fstat(fd); return `${s.dev}:${s.ino}:${s.rdev}`; } catch { return ''; } };
const keep = [0, 1, 2].map((fd) => open(`/dev/fd/${fd}`, fd ? 'w' : 'r'));
const known = [0, 1, 2].map(identity);

// ---- what earlier execs left running (timers, servers) and prints while another one runs is not that one's output
const { AsyncLocalStorage } = require('async_hooks');
const activeResources = process.getActiveResourcesInfo && process.getActiveResourcesInfo.bind(process);
const late = [];          // where streams went before the last switch
let context = null;       // of the exec under way, once streams were switched for it: it costs time, so only then
let isSwitched = false;
const isLate = () => context !== null && context.getStore() !== context;
function switchStreams(places) {
  const before = [...keep];
  try {
    const opened = places.split(' ').map((place) => open(place, 'w'));
    for (const fd of [1, 2]) {
      if (late[fd] !== undefined) close(late[fd]);
      late[fd] = before[fd];
      reopen(fd, `/dev/fd/${opened[fd - 1]}`);
      keep[fd] = opened[fd - 1];
      known[fd] = identity(fd);
    }
    isSwitched = true;
    send('o', '1');
  } catch { send('o', '0'); }
}
const inContext = (job) => {
  if (!isSwitched) return job();
  isSwitched = false;
  context = new AsyncLocalStorage();
  return context.run(context, job);
};
function leaveContext() { if (context) { context.disable(); context = null; } }
const leavesSomething = () => activeResources && activeResources().length > resting;

function restoreStreams() {
  for (const fd of [0, 1, 2]) if (identity(fd) !== known[fd]) reopen(fd, `/dev/fd/${keep[fd]}`);
  setStreams();
}
function reopen(fd, file) {  // no dup2 here: the lowest free number is what open gives
  try { close(fd); } catch { /* was closed */ }
  return open(file, fd ? 'w' : 'r');
}
const streamWrite = Writable.prototype.write;
function setStreams() {
  Writable.prototype.write = streamWrite;
  Buffer.from = bufferFrom, Buffer.concat = bufferConcat;  // streams need them
  for (const [i, name] of [[1, 'stdout'], [2, 'stderr']]) {
    while (std[i].writableCorked) uncork.call(std[i]);
    for (const key of ['write', '_write', '_writev', 'emit', 'cork'])  // patched by the user
      if (std[i][key] !== stdMethods[i][key]) defineProperty(std[i], key, { configurable: true, enumerable: false, writable: true, value: stdMethods[i][key] });
    const d = getOwnPropertyDescriptor(process, name);
    if (!d || d.value !== std[i]) defineProperty(process, name, { configurable: true, enumerable: true, writable: true, value: std[i] });
  }
}
function freshStdin() {
  let stream;
  defineProperty(process, 'stdin', {
    configurable: true, enumerable: true,
    get() { return stream ||= fs.createReadStream(null, { fd: 0, autoClose: false }); },
    set(v) { stream = v; },
  });
}

// ---- user code
const session = new Session();
session.connect();
function post(method, params) {
  let answer;
  session.post(method, params, (err, res) => { answer = err ? { failed: err } : res; });
  return answer;
}
const hidden = { job: null, taken: undefined };
defineProperty(globalThis, '__sessions', { value: hidden });
const guard = new vm.Script('__sessions.job()', { filename: 'node:sessions' });
// vm's breakOnSigint starts and stops a watchdog thread around each run, and between that and a SIGINT listener there are
// moments where the signal kills. So the watchdog is started once, for good (two holds: giving one back clears its
// "pending" mark). Outside a guarded run SIGINT then only sets the mark, which is looked at while a call awaits.
const watch = (() => {
  try {
    const c = process.binding('contextify');
    if (!c.startSigintWatchdog || !c.watchdogHasPendingSigint) return null;
    c.startSigintWatchdog(), c.startSigintWatchdog();
    return c;
  } catch { return null; }
})();
function guarded(job) {  // SIGINT ends even an endless loop in here
  hidden.job = job;
  return guard.runInThisContext({ breakOnSigint: true });
}
function clearPending() { if (watch) { watch.stopSigintWatchdog(); watch.startSigintWatchdog(); } }
let poll = null;
function awaitSigint() { poll = setInterval(() => { if (watch.watchdogHasPendingSigint()) onInt(); }, 15); }
function rearm() {  // listeners of the user, or without the watchdog our own
  for (const event of ['uncaughtException', 'unhandledRejection'])
    if (!emitter.listeners.call(process, event).includes(complain)) emitter.on.call(process, event, complain);
  if (!watch) { if (!emitter.listeners.call(process, 'SIGINT').includes(onInt)) emitter.on.call(process, 'SIGINT', onInt); return; }
  if (!emitter.listenerCount.call(process, 'SIGINT')) return;
  emitter.removeAllListeners.call(process, 'SIGINT');
  watch.stopSigintWatchdog(), watch.stopSigintWatchdog();
  watch.startSigintWatchdog(), watch.startSigintWatchdog();
}

function valueOf(remote) {
  if (remote.objectId === undefined) {
    if (remote.type === 'undefined') return undefined;
    if ('unserializableValue' in remote) {
      const u = remote.unserializableValue;
      return u.endsWith('n') ? BigInt(u.slice(0, -1)) : u === '-0' ? -0 : Number(u);
    }
    return remote.value;
  }
  post('Runtime.callFunctionOn', { functionDeclaration: 'function(v) { __sessions.taken = v; }', objectId: remote.objectId, arguments: [{ objectId: remote.objectId }], silent: true });
  const v = hidden.taken;
  hidden.taken = undefined;
  post('Runtime.releaseObject', { objectId: remote.objectId });
  return v;
}

let importer, importerCwd;
hidden.import = (spec, options) => {
  spec = `${spec}`;
  if (!/^(\.{0,2}\/|file:|data:)/.test(spec)) imported.add(spec);
  if (importerCwd !== cwdNow()) {
    importerCwd = cwd;
    const base = path.join(cwd, '[call]');
    const loader = vm.constants && vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
    if (loader) importer = vm.runInThisContext('(s, o) => import(s, o)', { filename: base, importModuleDynamically: loader });
    else importer = (s) => import(/^\.{0,2}\//.test(s) ? require('url').pathToFileURL(path.resolve(importerCwd, s)).href : resolve(s));
    const resolve = (s) => { try { const p = createRequire(base).resolve(s); return path.isAbsolute(p) ? require('url').pathToFileURL(p).href : p; } catch { return s; } };
  }
  const warn = process.emitWarning;
  process.emitWarning = (w, t, ...more) => { if (t !== 'ExperimentalWarning' || !/vm\./.test(w)) warn.call(process, w, t, ...more); };  // the user did not choose it
  try { return importer(spec, options); } finally { process.emitWarning = warn; }
};

// V8's REPL mode has no import() of its own: calls outside strings, comments and regular expressions go to ours.
function redirectImports(code) {
  if (!/\bimport\s*\(/.test(code)) return code;
  let out = '', i = 0, last = '';  // last: last significant character or word
  const braces = [];
  const text = (end) => { out += code.slice(i, end); i = end; };
  const template = () => {
    while (i < code.length) {
      if (code[i] === '\\') text(i + 2);
      else if (code[i] === '`') { text(i + 1); last = '`'; return; }
      else if (code.startsWith('${', i)) { text(i + 2); braces.push('`'); last = '{'; return; }
      else text(i + 1);
    }
  };
  while (i < code.length) {
    const rest = code.slice(i, i + 200), c = code[i];
    let m;
    if (code.startsWith('//', i)) { const e = code.indexOf('\n', i); text(e < 0 ? code.length : e); }
    else if (code.startsWith('/*', i)) { const e = code.indexOf('*/', i + 2); text(e < 0 ? code.length : e + 2); }
    else if (c === '"' || c === "'") {
      let e = i + 1;
      while (e < code.length && code[e] !== c && code[e] !== '\n') e += code[e] === '\\' ? 2 : 1;
      text(e + 1); last = '"';
    } else if (c === '`') { text(i + 1); template(); }
    else if (c === '{') { braces.push('{'); text(i + 1); last = c; }
    else if (c === '}') { text(i + 1); last = c; if (braces.pop() === '`') template(); }
    else if (c === '/' && (/^[=(,;:!&|?{}\[+\-*%<>~^]?$/.test(last) || /^(return|typeof|case|in|of|await|yield|void|delete|do|else)$/.test(last)) && (m = /^\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^\/\\\n\[])+\//.exec(code.slice(i, i + 5000)))) { text(i + m[0].length); last = '/re/'; }
    else if ((m = /^[\p{ID_Start}$_][\p{ID_Continue}$]*/u.exec(rest))) {
      if (m[0] === 'import' && last !== '.' && /^import\s*\(/.test(rest)) { out += '__sessions.import'; i += 6; } else text(i + m[0].length);
      last = m[0];
    } else { if (!/\s/.test(c)) last = c; text(i + 1); }
  }
  return out;
}

function cwdNow() {
  try { cwd = process.cwd(); } catch { /* removed: the last one known */ }
  return cwd;
}

let requireHere, requireCwd;
function localRequire() {
  if (requireCwd !== cwdNow()) { requireCwd = cwd; requireHere = createRequire(path.join(cwd, '[call]')); }
  return requireHere;
}
function userRequire(id) {
  const r = localRequire()(id);
  if (typeof id === 'string' && !/^\.{0,2}\//.test(id)) imported.add(id);
  return r;
}
userRequire.resolve = Object.assign((...a) => localRequire().resolve(...a), { paths: (...a) => localRequire().resolve.paths(...a) });
defineProperty(userRequire, 'name', { value: 'require' });

// ---- errors
function trimStack(stack) {
  const lines = stack.split('\n');
  const cut = lines.findIndex((l) => /^ +at .*\bnode:(inspector|sessions)\b/.test(l));
  return (cut < 0 ? lines : lines.slice(0, cut)).filter((l) => !/^ +at .*(\bnode:internal\/|\bnode:(vm|inspector)\b)/.test(l) && !l.includes(__filename)).join('\n');
}
function errorText(e) {
  const is = util.types.isNativeError(e) || e instanceof Error;
  if (!is) return 'Uncaught ' + inspect(e);
  try {
    if (typeof e.stack === 'string') {
      const t = trimStack(e.stack);
      if (t !== e.stack) e.stack = t;
    }
  } catch { /* frozen */ }
  const shown = inspect(e);
  return /\n +at /.test(e.stack) ? shown : shown.replace(/^\[([^]*)\]$/, '$1');
}
function describe(e) {
  try {
    if (e !== null && typeof e === 'object' && (util.types.isNativeError(e) || e instanceof Error))
      return { type: String((e.constructor && e.constructor.name) || e.name || 'Error'), message: String(e.message) };
    return { type: typeof e === 'object' && e ? String((e.constructor && e.constructor.name) || 'Object') : typeof e, message: typeof e === 'string' ? e : inspect(e) };
  } catch { return { type: 'Error', message: '<unprintable>' }; }
}
function complain(e) {
  let t;
  try { t = errorText(e); } catch { t = 'Error: <unprintable>'; }
  try { writeAll(2, Buffer.from(t + '\n')); } catch { /* stderr closed */ }
}

function exactJson(value) {
  let left = MAX_VALUE;
  const ok = (v, depth) => {
    if (--left < 0 || depth > 200) return false;
    if (v === null || typeof v === 'boolean') return true;
    if (typeof v === 'number') return Number.isFinite(v) && !Object.is(v, -0);
    if (typeof v === 'string') { left -= v.length; return left >= 0 && wellFormed(v) === v; }
    if (typeof v !== 'object' || typeof v.toJSON === 'function' || util.types.isProxy(v)) return false;
    if (Array.isArray(v)) {
      if (v.length > left) return false;
      for (let i = 0; i < v.length; i++) if (!ok(v[i], depth + 1)) return false;
      return true;
    }
    const p = getPrototypeOf(v);
    if ((p !== Object.prototype && p !== null) || Object.getOwnPropertySymbols(v).length) return false;
    for (const k of Object.keys(v)) { left -= k.length; if (wellFormed(k) !== k || !ok(v[k], depth + 1)) return false; }
    return true;
  };
  if (!ok(value, 0)) return undefined;
  const s = stringify(value);
  return Buffer.byteLength(s) <= MAX_VALUE ? s : undefined;
}

// ---- one call
const interruptedBy = (e) => e && e.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED';
function isExpression(code) {  // {a: 1} alone is meant as an object, as in the REPL
  try { new vm.Script(`(${code}\n)`); return true; } catch { return false; }
}

function run(op, code, stdin) {
  const name = `call-${++count}`;
  let done = false, inside = true, early = null;
  const settle = (kind, v) => {
    if (done) return;
    if (inside) { early ||= [kind, v]; return; }  // the guard has taken our SIGINT listener away: not in there
    done = true;
    finish(op, kind, v);
  };
  call = { settle };
  clearPending();
  if (stdin) reopen(0, stdin);
  freshStdin();
  try {
    code = redirectImports(code);
    if (op === 'v' || (/^\s*\{/.test(code) && isExpression(code))) code = `(${code}\n)`;
    inContext(() => guarded(() => {
      session.post('Runtime.evaluate', { expression: `${code}\n//# sourceURL=${name}`, replMode: true }, orLost((err, res) => {
        if (err) return settle('error', new Error(err.message));
        const d = res.exceptionDetails;
        if (!d) return settle('value', valueOf(res.result));
        const e = d.exception ? valueOf(d.exception) : new Error(d.text);
        if (util.types.isNativeError(e) && e.name === 'SyntaxError' && !/\n +at .*call-/.test(e.stack))
          try { e.stack = `${e.name}: ${e.message}\n    at ${name}:${d.lineNumber + 1}:${d.columnNumber + 1}`; } catch { /* frozen */ }
        settle('error', e);
      }));
      tick.call(process);  // what follows an await that is ready runs under the guard, too
    }));
  } catch (e) { early = interruptedBy(e) ? ['interrupted'] : ['error', e]; }
  inside = false;
  if (early) settle(...early);
  else if (watch) awaitSigint();
}

const finish = orLost((op, kind, v) => {
  let extra = '', exit = 0;
  if (kind === 'value' && (v !== undefined || op === 'v')) {
    const show = () => {
      const shown = inspect(v, { maxStringLength: MAX_VALUE + 1 });
      extra = `,"value":${quote(shown.slice(0, MAX_VALUE))}`;
      if (shown.length > MAX_VALUE) extra += ',"value_truncated":true';
      if (op === 'v') { const j = exactJson(v); if (j !== undefined) extra += `,"json":${j}`; }
    };
    try {
      if (v !== null && (typeof v === 'object' || typeof v === 'function')) guarded(show); else show();
    } catch (e) { [kind, v] = interruptedBy(e) ? ['interrupted'] : ['error', e]; }
  }
  if (kind === 'error') {
    exit = 1;
    complain(v);
    const d = describe(v);
    extra = `,"error":{"type":${quote(d.type)},"message":${quote(d.message.slice(0, MAX_VALUE))}}`;
  } else if (kind === 'interrupted') { exit = 130; extra = ',"interrupted":true'; }
  call = null;
  if (poll) { clearInterval(poll); poll = null; }
  leaveContext();
  restoreStreams();
  rearm();
  if (leavesSomething()) send('b', '');
  send('r', `{"exit":${exit},"cwd":${quote(cwdNow())}${extra}}`);
  sendState();
  if (inbox.length) setImmediate(next);
});
function sendState() {
  const now = quote2env();
  if (now === env) return;
  env = now;
  if (Buffer.byteLength(now) <= MAX_STATE) send('s', now);
}
const quote2env = () => wellFormed(stringify(process.env));

function names() {
  const found = new Set(getOwnPropertyNames(globalThis).filter((k) => !baseline.has(k)));
  for (const k of (post('Runtime.globalLexicalScopeNames', {}) || {}).names || []) found.add(k);
  found.delete('__sessions');
  let left = 60000;
  const cut = (list) => [...list].sort().slice(0, MAX_NAMES).filter((k) => (left -= k.length * 3 + 3) > 0).map(quote).join(',');
  send('n', `{"names":[${cut(found)}],"imports":[${cut(imported)}]}`);
}

function onInt() { if (call) call.settle('interrupted'); }

// ---- calls in
let inbox = Buffer.alloc(0);
const next = orLost(() => {
  if (call || inbox.length < 18) return;
  if (!isHeader(latin1(inbox, 0, 18))) reallyExit(LOST);
  const size = +latin1(inbox, 2, 12), pathSize = +latin1(inbox, 13, 17), hasNonce = inbox[0] < 97, begin = hasNonce ? 35 : 18;  // capitals: a nonce follows
  const end = begin + pathSize + size;
  if (inbox.length < end) return;
  let op = latin1(inbox, 0, 1);
  op = { A: 'x', a: 'x', X: 'x', V: 'v', N: 'n', O: 'o' }[op] || op;
  if (hasNonce) nonce = latin1(inbox, 18, 34) + ' ';
  const stdin = utf8(inbox, begin, begin + pathSize), code = utf8(inbox, begin + pathSize, end);
  inbox = part(inbox, end);
  if (op === 'n') names();
  else if (op === 'o') switchStreams(stdin);
  else return run(op, code, stdin);
  if (inbox.length) setImmediate(next);
});

if (!watch) rearm();
process.on('uncaughtException', complain);
process.on('unhandledRejection', complain);
setStreams();
freshStdin();
delete require.cache[__filename];
process.argv.length = 1;
process.mainModule = undefined;
defineProperty(userRequire, 'cache', { value: require.cache, enumerable: true });
const baseline = new Set(getOwnPropertyNames(globalThis).concat('require', 'module', 'exports'));
for (const [k, v] of [['require', userRequire], ['module', { exports: {} }]]) defineProperty(globalThis, k, { value: v, writable: true, configurable: true, enumerable: false });
defineProperty(globalThis, 'exports', { value: module.exports, writable: true, configurable: true, enumerable: false });
const input = new (require('net').Socket)({ fd: 3, readable: true, writable: false });
const exit = process.exit.bind(process);
input.on('data', orLost((d) => { inbox = inbox.length ? bufferConcat([inbox, d]) : d; next(); }));
input.on('end', () => exit(LOST));  // should an exec be on its way, it was not run
input.on('error', () => exit(LOST));
void console._stdout, void console._stderr;  // bound on first use: to ours, whatever process.stdout is then
const resting = activeResources ? activeResources().length : 0;
sendState();  // before the hello, which tells that no code of the user's has run yet
send('h', `{"pid":${process.pid},"version":"${process.versions.node}"}`);
