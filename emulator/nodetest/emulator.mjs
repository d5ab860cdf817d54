// Starts `spanqueue emulator` for a test file and ends it afterwards. Copy it into a project of yours as it is.
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {createInterface} from 'node:readline';

// startEmulator resolves, once the emulator answers, to its address and a function that ends it. Everything the program
// prints on standard error is shown. SPANQUEUE is the path of the program; otherwise it is looked for in PATH.
export async function startEmulator(...flags) {
  const program = process.env.SPANQUEUE ?? 'spanqueue';
  const child = spawn(program, ['emulator', '--addr', 'localhost:0', ...flags], {stdio: ['ignore', 'pipe', 'inherit']});
  const ended = once(child, 'exit');
  // The emulator must not outlive a test runner that is killed or exits early.
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const [line] = await Promise.race([
    once(createInterface(child.stdout), 'line'),
    ended.then(
      ([code]) => { throw new Error(`${program} emulator ended with code ${code} and told no address`); },
      err => { throw new Error(`${program} cannot be started: ${err.message}; put it in PATH, or its path in SPANQUEUE`); },
    ),
  ]);
  return {
    address: line.replace('SPANNER_EMULATOR_HOST=', ''),
    async stop() {
      process.off('exit', kill);
      child.kill('SIGTERM');
      const [code] = await ended;
      if (code !== 0) throw new Error(`${program} emulator ended with code ${code}`);
    },
  };
}
