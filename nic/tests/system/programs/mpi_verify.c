/* An MPI program that checks every byte: messages, one-sided operations, atomics and collectives. It uses
 * only the MPI standard. Rank 0 prints how many bytes and values were wrong; the exit status is 1 if any
 * was. Usage: verify [ROUNDS] [LARGEST MESSAGE IN BYTES] [FILE FOR REPORTS]
 *
 * The reports (mpi_report.h) count what must go from one rank to another however MPI does it: messages,
 * puts and gets, but not collectives, whose routes are MPI's own choice. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_report.h"

static int rank, ranks;
static long wrong;
static const char* first_wrong = NULL;

static void expect(int good, long amount, const char* what) {
  if (good) return;
  wrong += amount;
  if (first_wrong == NULL) first_wrong = what;
}

/* Data that depends on the sender, the receiver, the round and the position. */
static uint8_t byte_of(unsigned seed, size_t at) {
  uint64_t x = (seed * 0x9e3779b97f4a7c15ull) ^ (at * 0xd1342543de82ef95ull);
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ull;
  return (uint8_t)(x >> 56);
}

static void fill(uint8_t* data, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i) data[i] = byte_of(seed, i);
}

static void check(const uint8_t* data, size_t bytes, unsigned seed, const char* what) {
  long bad = 0;
  for (size_t i = 0; i < bytes; ++i) bad += data[i] != byte_of(seed, i);
  expect(bad == 0, bad, what);
}

static unsigned seed_of(int from, int to, int round) {
  return (unsigned)from * 100003u + (unsigned)to * 1009u + (unsigned)round + 1u;
}

static void neighbours(size_t bytes, int round) {
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  uint8_t* out = malloc(bytes + 1);
  uint8_t* in = calloc(bytes + 1, 1);
  MPI_Request requests[2];
  fill(out, bytes, seed_of(rank, next, round));
  in[bytes] = 0x5a;
  MPI_Irecv(in, (int)bytes, MPI_BYTE, previous, round, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, (int)bytes, MPI_BYTE, next, round, MPI_COMM_WORLD, &requests[1]);
  moved_to(&messages_moved, next, bytes);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  check(in, bytes, seed_of(previous, rank, round), "a message from the neighbour");
  expect(in[bytes] == 0x5a, 1, "the byte behind a message");
  free(out);
  free(in);
}

/* All ranks send many messages of varying size to rank `root`, which receives them in any order. */
static void wildcards(int root, int round) {
  enum { kEach = 40, kLargest = 20000 };
  uint8_t* data = malloc(kLargest);
  if (rank != root) {
    for (int i = 0; i < kEach; ++i) {
      const int bytes = (i * 7919 + rank * 31) % kLargest;
      fill(data, (size_t)bytes, seed_of(rank, root, round + i));
      MPI_Send(data, bytes, MPI_BYTE, root, i, MPI_COMM_WORLD);
      moved_to(&messages_moved, root, (size_t)bytes);
    }
  } else {
    int* next = calloc((size_t)ranks, sizeof *next);
    for (int i = 0; i < kEach * (ranks - 1); ++i) {
      MPI_Status status;
      int bytes = 0;
      int source = MPI_ANY_SOURCE, any_tag = MPI_ANY_TAG;
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 50000000
      /* MPICH 5.0.2 now and then waits for ever in a receive from anybody, over every transport of UCX. */
      MPI_Probe(source, any_tag, MPI_COMM_WORLD, &status);
      source = status.MPI_SOURCE;
      any_tag = status.MPI_TAG;
#endif
      MPI_Recv(data, kLargest, MPI_BYTE, source, any_tag, MPI_COMM_WORLD, &status);
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      const int from = status.MPI_SOURCE, tag = status.MPI_TAG;
      expect(tag == next[from]++, 1, "the order of messages");
      expect(bytes == (tag * 7919 + from * 31) % kLargest, 1, "the size of a message from anybody");
      check(data, (size_t)bytes, seed_of(from, root, round + tag), "a message from anybody");
    }
    free(next);
  }
  free(data);
  MPI_Barrier(MPI_COMM_WORLD); /* what follows must not be taken for one of these */
}

/* Small messages to all ranks at once, more than any queue holds. */
static void storm(int count) {
  int32_t* out = malloc((size_t)count * sizeof *out);
  int32_t* in = malloc((size_t)count * (size_t)ranks * sizeof *in);
  MPI_Request* requests = malloc((size_t)count * (size_t)ranks * 2 * sizeof *requests);
  int used = 0;
  for (int i = 0; i < count; ++i) out[i] = rank * 1000003 + i;
  for (int peer = 0; peer < ranks; ++peer)
    for (int i = 0; i < count; ++i)
      MPI_Irecv(&in[peer * count + i], 1, MPI_INT32_T, peer, 7, MPI_COMM_WORLD, &requests[used++]);
  for (int peer = 0; peer < ranks; ++peer) {
    for (int i = 0; i < count; ++i)
      MPI_Isend(&out[i], 1, MPI_INT32_T, peer, 7, MPI_COMM_WORLD, &requests[used++]);
    moved_to(&messages_moved, peer, (size_t)count * sizeof *out);
  }
  MPI_Waitall(used, requests, MPI_STATUSES_IGNORE);
  for (int peer = 0; peer < ranks; ++peer)
    for (int i = 0; i < count; ++i)
      expect(in[peer * count + i] == peer * 1000003 + i, 1, "a message of the storm");
  free(out);
  free(in);
  free(requests);
}

/* Puts into the next rank's window and gets from the previous one's, between fences. */
static void fences(size_t bytes, int round) {
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  /* Not MPI_Win_allocate, which Open MPI 4 serves without the NIC within a host. */
  uint8_t* memory = calloc(2, bytes);
  uint8_t* data = malloc(bytes);
  MPI_Win window;
  MPI_Win_create(memory, (MPI_Aint)(2 * bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  fill(memory + bytes, bytes, seed_of(rank, rank, round));
  fill(data, bytes, seed_of(rank, next, round));
  MPI_Win_fence(0, window);
  MPI_Put(data, (int)bytes, MPI_BYTE, next, 0, (int)bytes, MPI_BYTE, window);
  moved_to(&puts_moved, next, bytes);
  MPI_Win_fence(0, window);
  check(memory, bytes, seed_of(previous, rank, round), "a put between fences");
  MPI_Get(data, (int)bytes, MPI_BYTE, previous, (MPI_Aint)bytes, (int)bytes, MPI_BYTE, window);
  moved_from(&gets_moved, previous, bytes);
  MPI_Win_fence(0, window);
  check(data, bytes, seed_of(previous, previous, round), "a get between fences");
  MPI_Win_free(&window);
  free(memory);
  free(data);
}

/* Data of a flushed put has arrived: its origin gets it back, and its target, once told, sees it. */
static void flushes(size_t bytes, int round) {
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  uint8_t* memory = calloc(bytes, 1);
  uint8_t* data = malloc(bytes);
  uint8_t* back = calloc(bytes, 1);
  MPI_Win window;
  MPI_Win_create(memory, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_lock_all(0, window);
  for (int turn = 0; turn < 3; ++turn) {
    const unsigned seed = seed_of(rank, next, round + turn);
    fill(data, bytes, seed);
    MPI_Put(data, (int)bytes, MPI_BYTE, next, 0, (int)bytes, MPI_BYTE, window);
    moved_to(&puts_moved, next, bytes);
    MPI_Win_flush(next, window);
    MPI_Get(back, (int)bytes, MPI_BYTE, next, 0, (int)bytes, MPI_BYTE, window);
    moved_from(&gets_moved, next, bytes);
    MPI_Win_flush(next, window);
    check(back, bytes, seed, "a flushed put, got back");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window);
    check(memory, bytes, seed_of(previous, rank, round + turn), "a flushed put at its target");
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  free(memory);
  free(data);
  free(back);
}

static void atomics(int turns) {
  int64_t* memory = NULL;
  MPI_Win window;
  MPI_Win_allocate((MPI_Aint)(66 * sizeof *memory), sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                   &window);
  memset(memory, 0, 66 * sizeof *memory);
  MPI_Barrier(MPI_COMM_WORLD);

  /* A counter at rank 0: each value is given to one rank only. */
  int64_t* mine = malloc((size_t)turns * sizeof *mine);
  int64_t* all = malloc((size_t)turns * (size_t)ranks * sizeof *all);
  const int64_t one = 1;
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < turns; ++i) {
    MPI_Fetch_and_op(&one, &mine[i], MPI_INT64_T, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
  }
  /* A lock of compare-and-swap around a sum at the last rank. */
  const int target = ranks - 1;
  const int64_t zero = 0, holder = rank + 1;
  for (int i = 0; i < turns; ++i) {
    int64_t before = -1, sum = 0;
    while (before != 0) {
      MPI_Compare_and_swap(&holder, &zero, &before, MPI_INT64_T, target, 1, window);
      MPI_Win_flush(target, window);
    }
    MPI_Get(&sum, 1, MPI_INT64_T, target, 2, 1, MPI_INT64_T, window);
    MPI_Win_flush(target, window);
    sum += rank + 1;
    MPI_Put(&sum, 1, MPI_INT64_T, target, 2, 1, MPI_INT64_T, window);
    MPI_Win_flush(target, window);
    MPI_Compare_and_swap(&zero, &holder, &before, MPI_INT64_T, target, 1, window);
    MPI_Win_flush(target, window);
    expect(before == holder, 1, "the holder of the lock");
  }
  MPI_Win_unlock_all(window);

  /* Sums of everybody at everybody, under exclusive locks. */
  int64_t part[32];
  for (int i = 0; i < 32; ++i) part[i] = (int64_t)(rank + 1) * (i + 1);
  for (int peer = 0; peer < ranks; ++peer) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, peer, 0, window);
    MPI_Accumulate(part, 32, MPI_INT64_T, peer, 34, 32, MPI_INT64_T, MPI_SUM, window);
    MPI_Win_unlock(peer, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);

  MPI_Allgather(mine, turns, MPI_INT64_T, all, turns, MPI_INT64_T, MPI_COMM_WORLD);
  char* seen = calloc((size_t)turns * (size_t)ranks, 1);
  for (int i = 0; i < turns * ranks; ++i) {
    const int fits = all[i] >= 0 && all[i] < (int64_t)turns * ranks && !seen[all[i]];
    expect(fits, 1, "a value of the counter");
    if (fits) seen[all[i]] = 1;
  }
  const int64_t everybody = (int64_t)ranks * (ranks + 1) / 2;
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  if (rank == target) expect(memory[2] == everybody * turns, 1, "the sum under the lock");
  for (int i = 0; i < 32; ++i) expect(memory[34 + i] == everybody * (i + 1), 1, "an accumulated sum");
  MPI_Win_unlock(rank, window);
  MPI_Win_free(&window);
  free(mine);
  free(all);
  free(seen);
}

static void collectives(int count, int round) {
  int32_t* a = malloc((size_t)count * (size_t)ranks * sizeof *a);
  int32_t* b = malloc((size_t)count * (size_t)ranks * sizeof *b);
  const int root = round % ranks;
  for (int i = 0; i < count; ++i) a[i] = rank == root ? i * 3 + root : -1;
  MPI_Bcast(a, count, MPI_INT32_T, root, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) expect(a[i] == i * 3 + root, 1, "a broadcast");

  for (int i = 0; i < count; ++i) a[i] = (rank + 1) * (i % 1000);
  MPI_Allreduce(a, b, count, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i)
    expect(b[i] == ranks * (ranks + 1) / 2 * (i % 1000), 1, "a sum of all ranks");

  for (int i = 0; i < count * ranks; ++i) a[i] = rank * 7 + i;
  MPI_Alltoall(a, count, MPI_INT32_T, b, count, MPI_INT32_T, MPI_COMM_WORLD);
  for (int peer = 0; peer < ranks; ++peer)
    for (int i = 0; i < count; ++i)
      expect(b[peer * count + i] == peer * 7 + rank * count + i, 1, "an exchange of all with all");

  MPI_Scan(&rank, b, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect(b[0] == rank * (rank + 1) / 2, 1, "a prefix sum");
  free(a);
  free(b);
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 2;
  const size_t largest = argc > 2 ? (size_t)atol(argv[2]) : 1u << 20;
  const char* reports = argc > 3 ? argv[3] : NULL;
  static const size_t sizes[] = {0,    1,    7,     8,     63,     1000,     4096,
                                 8192, 8249, 30000, 65536, 300001, 1u << 20, 4194307};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  start_report();
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= largest; ++i) {
      neighbours(sizes[i], round * 100 + (int)i);
      if (sizes[i] > 0) fences(sizes[i], round * 100 + (int)i);
      if (sizes[i] > 0) flushes(sizes[i], round * 100 + (int)i);
    }
    wildcards(round % ranks, round * 100);
    storm(200);
    atomics(20);
    collectives(1, round);
    collectives(3000, round);
  }
  long all_wrong = 0;
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (first_wrong != NULL) fprintf(stderr, "rank %d: %ld wrong, first in: %s\n", rank, wrong, first_wrong);
  if (rank == 0) printf("ranks %d errors %ld\n", ranks, all_wrong);
  if (reports != NULL && !write_report(reports, rank, ranks)) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Finalize();
  return all_wrong == 0 ? 0 : 1;
}
