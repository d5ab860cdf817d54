// The program of docs/emulator.md, as it stands there.
import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {test} from 'node:test';
import {promisify} from 'node:util';
import {startEmulator} from './emulator.mjs';

test('the program of the manual', async t => {
  const emulator = await startEmulator();
  t.after(() => emulator.stop());
  const env = {...process.env, SPANNER_EMULATOR_HOST: emulator.address, METADATA_SERVER_DETECTION: 'none'};
  const program = new URL('quickstart.mjs', import.meta.url).pathname;
  const {stdout} = await promisify(execFile)(process.execPath, [program], {env, timeout: 30_000});
  assert.equal(stdout, 'order 1: two apples\n');
});
