// Starts `spanqueue emulator` for a test file and ends it afterwards. Copy it into a project of yours as it is.
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {createInterface} from 'node:readline';

// startEmulator resolves, once the emulator answers, to its address and a function that ends it. Everything the program
// prints on standard error is shown. SPANQUEUE is the path of the program; otherwise it is looked for in PATH.
export async function startEmulator(...flags) {
  const program = process.env.SPANQUEUE ?? 'spanqueue';
  // Its standard input closes when this process is gone, however that went: it cannot outlive a test runner that is killed.
  const child = spawn(program, ['emulator', '--addr', 'localhost:0', '--end-with-stdin', ...flags], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: {...process.env, SPANNER_EMULATOR_HOST: ''}, // an emulator of its own
  });
  const ended = once(child, 'exit');
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
      child.stdin.end();
      const [code] = await ended;
      if (code !== 0) throw new Error(`${program} emulator ended with code ${code}`);
    },
  };
}
