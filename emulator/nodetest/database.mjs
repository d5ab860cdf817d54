// A database for a test file, and what the tests read from it.
import assert from 'node:assert/strict';
import {Spanner} from '@google-cloud/spanner';
import {startEmulator} from './emulator.mjs';

// A queue like that of the public samples: their spelling, and their comma after the last column.
const createQueue = name => `CREATE QUEUE ${name} (
  Id INT64 NOT NULL,
  Payload STRING(MAX) NOT NULL,
) PRIMARY KEY (Id)`;
export const effects = 'CREATE TABLE Effects (Id INT64 NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Id)';

export const code = {notFound: 5, alreadyExists: 6, outOfRange: 11};

// openDatabase starts an emulator with the given flags and creates a database in it.
export async function openDatabase(schema, ...flags) {
  const emulator = await startEmulator(...flags);
  process.env.SPANNER_EMULATOR_HOST = emulator.address;
  process.env.METADATA_SERVER_DETECTION = 'none'; // else the client looks for Google's cloud first, and complains
  const spanner = new Spanner({projectId: 'node'});
  const [instance, creating] = await spanner.createInstance('test', {config: 'emulator-config', nodes: 1});
  await creating.promise();
  const [database, operation] = await instance.createDatabase('tasks', {schema});
  await operation.promise();
  return {
    spanner, instance, database,
    async close() {
      await database.close();
      spanner.close();
      await emulator.stop();
    },
  };
}

// ddl changes the schema and waits until that is done.
export async function ddl(database, ...statements) {
  const [operation] = await database.updateSchema(statements);
  await operation.promise();
}

// rows runs a query and returns its rows as plain values.
export async function rows(database, sql, params = {}) {
  const [found] = await database.run({sql, params, json: true});
  return found;
}

// Queue is a queue of one test, created before it and dropped after it. That also ends the receive queries that the
// test has left open: the client has no way to cancel one (see docs/emulator.md).
export class Queue {
  static #made = 0;

  static async create(t, database) {
    const queue = new Queue(database, `Tasks${++Queue.#made}`);
    await ddl(database, createQueue(queue.name));
    t.after(() => ddl(database, `DROP QUEUE IF EXISTS ${queue.name}`));
    return queue;
  }

  constructor(database, name) {
    this.database = database;
    this.name = name;
  }

  // send and ack use a transaction of their own.
  send(id, payload, options = {}) {
    return this.database.runTransactionAsync(async tx => {
      tx.queueSend(this.name, [id], {payload, ...options});
      await tx.commit();
    });
  }

  ack(id, options) {
    return this.database.runTransactionAsync(async tx => {
      tx.queueAck(this.name, [id], options);
      await tx.commit();
    });
  }

  receive(duration = '1m') {
    return new Receiving(this.database, `SELECT * FROM RECEIVE_${this.name}(max_duration => '${duration}', max_batch_size => 20)`);
  }

  renew(...tokens) {
    return rows(this.database, `SELECT * FROM RENEWLEASE_${this.name}(lease_tokens => @tokens)`, {tokens});
  }

  async ids() {
    return (await rows(this.database, `SELECT Id FROM ${this.name} ORDER BY Id`)).map(row => row.Id);
  }
}

// Receiving is an open receive query. Messages come while it is open.
class Receiving {
  #waiting = [];
  #wake = () => {};
  #error;
  #open = true;

  constructor(database, sql) {
    const stream = database.runStream({sql, json: true});
    stream.on('data', message => { this.#waiting.push(message); this.#wake(); });
    stream.on('error', err => { this.#error = err; this.#open = false; this.#wake(); });
    stream.on('end', () => { this.#open = false; this.#wake(); });
  }

  // next waits for the next message, ms milliseconds at most.
  async next(ms = 5000) {
    const message = await this.#some(ms);
    assert.ok(message, `no message came within ${ms} ms`);
    return message;
  }

  // none checks that no message comes for ms milliseconds.
  async none(ms) {
    assert.equal(await this.#some(ms), undefined, 'a message came');
  }

  // end waits for the end of the query, and returns its error.
  async end(ms = 5000) {
    const until = Date.now() + ms;
    while (this.#open && Date.now() < until) await this.#change(until);
    assert.ok(!this.#open, `the query is still open after ${ms} ms`);
    return this.#error;
  }

  async #some(ms) {
    const until = Date.now() + ms;
    while (!this.#waiting.length && Date.now() < until) {
      assert.ok(this.#open, `the query ended: ${this.#error ?? 'without an error'}`);
      await this.#change(until);
    }
    return this.#waiting.shift();
  }

  // change waits until something happens or the time is over.
  #change(until) {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, until - Date.now());
      this.#wake = () => { clearTimeout(timer); resolve(); };
    });
  }
}
