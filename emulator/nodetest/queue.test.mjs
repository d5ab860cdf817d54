// The steps of the public queue samples, with Google's client alone.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {MutationGroup, MutationSet} from '@google-cloud/spanner';
import {Queue, code, ddl, openDatabase, rows} from './database.mjs';

const effects = 'CREATE TABLE Effects (Queue STRING(MAX) NOT NULL, Id INT64 NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Queue, Id)';

let db, database;
before(async () => { db = await openDatabase([effects]); database = db.database; });
after(() => db?.close());

// update runs statements in one transaction and returns how many rows each has changed. The client does not roll back
// when its function throws: the transaction would keep its locks, and its turn, for another 10 seconds.
const update = (...statements) => database.runTransactionAsync(async tx => {
  try {
    const counts = [];
    for (const sql of statements) counts.push((await tx.runUpdate(sql))[0]);
    await tx.commit();
    return counts;
  } catch (err) {
    await tx.rollback();
    throw err;
  }
});

test('the queue is in the schema', async t => {
  const queue = await Queue.create(t, database);
  const [statements] = await database.getSchema();
  assert.ok(statements.some(sql => sql.startsWith(`CREATE QUEUE ${queue.name} (`)), statements.join('\n'));
});

test('an open stream delivers what is sent by mutation and by SQL', async t => {
  const queue = await Queue.create(t, database);
  const open = queue.receive();
  await open.none(200);
  for (const [id, sending] of [
    [1, () => queue.send(1, 'by mutation')],
    [2, () => update(`INSERT INTO ${queue.name} (Id, Payload) VALUES (2, 'by SQL')`)],
    [3, () => {
      const set = new MutationSet();
      set.queueSend(queue.name, [3], {payload: 'by a mutation set'});
      return database.writeAtLeastOnce(set);
    }],
  ]) {
    await sending();
    const committed = Date.now();
    const message = await open.next();
    assert.ok(Date.now() - committed < 1000, `message ${id} took ${Date.now() - committed} ms`);
    assert.equal(message.Id, id);
    assert.match(message.Payload, /^by /);
    assert.equal(message.SpannerLastBatchMessage, true);
    assert.ok(message.SpannerLeaseToken);
    const leased = new Date(message.SpannerLeaseExpirationTimestamp) - Date.now();
    assert.ok(leased > 5000 && leased <= 10_500, `leased for another ${leased} ms`);
  }
});

test('a batch of groups is sent group by group', async t => {
  const queue = await Queue.create(t, database);
  const open = queue.receive();
  const groups = [1, 2].map(id => {
    const group = new MutationGroup();
    group.queueSend(queue.name, [id], {payload: 'in a group'});
    group.insert('Effects', {Queue: queue.name, Id: id, N: 1});
    return group;
  });
  const statuses = [];
  for await (const response of database.batchWriteAtLeastOnce(groups)) statuses.push(response.status.code);
  assert.deepEqual(statuses, [0, 0]);
  assert.deepEqual([(await open.next()).Id, (await open.next()).Id].sort(), [1, 2]);
});

test('a message with a due time comes when it is due', async t => {
  const queue = await Queue.create(t, database);
  const open = queue.receive();
  const due = Date.now() + 1000;
  // A Date would be calculated in floating point by the client, and come out some nanoseconds early.
  await queue.send(1, 'later', {deliverTime: {seconds: Math.floor(due / 1000), nanos: due % 1000 * 1e6 + 123}});
  const message = await open.next();
  assert.ok(Date.now() >= due, 'it came early');
  assert.ok(Date.now() - due < 10_000, 'it came late');
  assert.equal(message.DeliverTime.toISOString(), new Date(due).toISOString().replace('Z', '000123Z'));
});

test('a queue reads like a table', async t => {
  const queue = await Queue.create(t, database);
  await queue.send(1, 'one');
  await queue.send(2, 'two');
  assert.deepEqual(await rows(database, `SELECT Id, Payload FROM ${queue.name} ORDER BY Id`), [{Id: 1, Payload: 'one'}, {Id: 2, Payload: 'two'}]);
  const [read] = await database.table(queue.name).read({keys: [[2]], columns: ['Payload'], json: true});
  assert.deepEqual(read, [{Payload: 'two'}]);
});

test('a key that is there is refused', async t => {
  const queue = await Queue.create(t, database);
  await queue.send(1, 'one');
  await assert.rejects(queue.send(1, 'again'), {code: code.alreadyExists});
});

test('acknowledging by mutation', async t => {
  const queue = await Queue.create(t, database);
  await queue.send(1, 'one');
  await queue.ack(1);
  assert.deepEqual(await queue.ids(), []);
  await assert.rejects(queue.ack(1), {code: code.notFound});
  await queue.ack(1, {ignoreNotFound: true});
});

test('acknowledging and sending one key in one commit gives another message', async t => {
  const queue = await Queue.create(t, database);
  const open = queue.receive();
  await queue.send(1, 'first');
  const first = await open.next();
  await database.runTransactionAsync(async tx => {
    tx.queueAck(queue.name, [1]);
    tx.queueSend(queue.name, [1], {payload: 'second'});
    await tx.commit();
  });
  const second = await open.next();
  assert.equal(second.Payload, 'second');
  assert.notEqual(second.SpannerLeaseToken, first.SpannerLeaseToken);
});

test('acknowledging by SQL, in the transaction of the work', async t => {
  const queue = await Queue.create(t, database);
  await queue.send(1, 'one');
  const acknowledge = `DELETE FROM ${queue.name} WHERE Id = 1 ASSERT_ROWS_MODIFIED 1`;
  const effect = id => `INSERT INTO Effects (Queue, Id, N) VALUES ('${queue.name}', ${id}, 1)`;
  assert.deepEqual(await update(acknowledge, effect(1)), [1, 1]);
  await assert.rejects(update(effect(2), acknowledge), {code: code.outOfRange});
  await assert.rejects(update(acknowledge, effect(2)), {code: code.outOfRange});
  const kept = await rows(database, 'SELECT Id FROM Effects WHERE Queue = @queue', {queue: queue.name});
  assert.deepEqual(kept, [{Id: 1}], 'nothing of the others was kept');
});

test('a rolled back transaction sends nothing', async t => {
  const queue = await Queue.create(t, database);
  const open = queue.receive();
  await database.runTransactionAsync(async tx => {
    await tx.runUpdate(`INSERT INTO ${queue.name} (Id, Payload) VALUES (1, 'never')`);
    await tx.rollback();
  });
  await open.none(300);
  assert.deepEqual(await queue.ids(), []);
});

test('20 transactions at once, on one client', async t => {
  const n = 20;
  const queue = await Queue.create(t, database);
  const open = queue.receive();
  await database.runTransactionAsync(async tx => {
    tx.insert('Effects', {Queue: queue.name, Id: 0, N: 0});
    for (let id = 1; id <= n; id++) tx.queueSend(queue.name, [id], {payload: `${id}`});
    await tx.commit();
  });
  const messages = [];
  while (messages.length < n) messages.push(await open.next());

  let runs = 0;
  await Promise.all(messages.map(message => database.runTransactionAsync(async tx => {
    runs++;
    const [count] = await tx.runUpdate({sql: `DELETE FROM ${queue.name} WHERE Id = @id ASSERT_ROWS_MODIFIED 1`, params: {id: message.Id}});
    assert.equal(count, 1);
    const [[counter]] = await tx.run({sql: 'SELECT N FROM Effects WHERE Queue = @queue AND Id = 0', params: {queue: queue.name}, json: true});
    tx.update('Effects', {Queue: queue.name, Id: 0, N: counter.N + 1});
    await tx.commit();
  })));
  const [counter] = await rows(database, 'SELECT N FROM Effects WHERE Queue = @queue', {queue: queue.name});
  assert.equal(counter.N, n, 'each effect once');
  assert.deepEqual(await queue.ids(), [], 'each message acknowledged');
  assert.equal(runs, n, 'none had to run again');
});

test('deleting messages and the queue', async t => {
  const queue = await Queue.create(t, database);
  for (const id of [1, 2, 3]) await queue.send(id, 'x');
  await database.runTransactionAsync(async tx => {
    tx.deleteRows(queue.name, [[1]]);
    await tx.commit();
  });
  const remove = `DELETE FROM ${queue.name} WHERE Id = 2`;
  assert.deepEqual(await update(remove, remove), [1, 0]);
  assert.deepEqual(await queue.ids(), [3]);

  const open = queue.receive();
  assert.equal((await open.next()).Id, 3);
  await ddl(database, `DROP QUEUE ${queue.name}`);
  assert.equal((await open.end())?.code, code.notFound);
  await assert.rejects(queue.ids(), /Table not found/);
});
