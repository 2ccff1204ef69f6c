<?php
// The loop of the 2019 session benchmark, rewritten, as a second opinion on cachedyno's numbers:
// create, read and update sessions sequentially; MySQL connects for every operation, Redis
// keeps its connection.
//
//   php session-loop.php files DIRECTORY        SESSIONS CLIENT CLIENTS GATE inside|outside
//   php session-loop.php redis SOCKET           SESSIONS CLIENT CLIENTS GATE inside|outside
//   php session-loop.php mysql SOCKET:DATABASE  SESSIONS CLIENT CLIENTS GATE inside|outside
//
// With `outside`, values come from 64 generated before timing. All CLIENTS start each phase together:
// each creates a file in the directory GATE and waits for those of the others. (The script of 2019
// let its processes drift.)
// Prints one line: start and end of create, read and update in seconds of the monotonic clock, and
// how many reads found nothing.

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
const BYTES = 1500;
const TTL_S = 300;

function draw(): string
{
    $value = '';
    for ($i = 0; $i < BYTES; $i++) {
        $value .= ALPHABET[rand(0, 61)];
    }
    return $value;
}

function store(string $kind, string $place): array
{
    if ($kind === 'files') {
        $write = fn (string $id, string $value) => file_put_contents("$place/$id", $value);
        return [$write, fn (string $id) => @file_get_contents("$place/$id"), $write];
    }
    if ($kind === 'redis') {
        $redis = new Redis();
        $redis->connect($place);
        $write = fn (string $id, string $value) => $redis->setex($id, TTL_S, $value);
        return [$write, fn (string $id) => $redis->get($id), $write];
    }
    [$socket, $database] = explode(':', $place);
    $query = function (string $sql) use ($socket, $database) {
        $connection = new mysqli('localhost', 'root', '', $database, 0, $socket);
        $result = $connection->query($sql);
        $row = $result instanceof mysqli_result ? $result->fetch_assoc() : $result;
        $connection->close();
        return $row;
    };
    return [
        fn (string $id, string $value) => $query("INSERT INTO sessions VALUES ('$id', '$value', NULL)"),
        fn (string $id) => $query("SELECT * FROM sessions WHERE name='$id'")['value'] ?? false,
        fn (string $id, string $value) => $query("UPDATE sessions SET value='$value' WHERE name='$id'"),
    ];
}

[, $kind, $place, $sessions, $client, $clients, $gate, $drawing] = $argv;
[$create, $read, $update] = store($kind, $place);
$missed = 0;
$pool = $drawing === 'inside' ? [] : array_map(fn () => draw(), range(0, 63));
$value = fn (int $i): string => $pool === [] ? draw() : $pool[$i % 64];
$phase = 0;
$timed = function (callable $operation) use ($sessions, $client, $clients, $gate, &$phase): string {
    touch("$gate/" . ++$phase . "-$client");
    while (count(glob("$gate/$phase-*")) < (int) $clients) {
        usleep(500);
    }
    $started = hrtime(true);
    for ($i = 0; $i < (int) $sessions; $i++) {
        $operation("{$client}_$i", $i);
    }
    return sprintf('%.6f %.6f', $started / 1e9, hrtime(true) / 1e9);
};
$spans = [
    $timed(fn (string $id, int $i) => $create($id, $value($i))),
    $timed(function (string $id) use ($read, &$missed) {
        $value = $read($id);
        $missed += (int) (!is_string($value) || strlen($value) !== BYTES);
    }),
    $timed(fn (string $id, int $i) => $update($id, $value($i + 1))),
];
printf("%s %d\n", implode(' ', $spans), $missed);
