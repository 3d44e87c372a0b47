/* An MPI program of what MPICH's test suite found wrong: more gets at once than a NIC has room for registered
 * memory, windows in shared memory, dynamic windows, atomics of every size, and more ranks than CPUs. It says
 * on rank 0 how many values were wrong. Usage: windows [SCENARIO ...]
 */
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, ranks;
static long wrong;

static void expect(int good, const char* check_name) {
  if (good) return;
  if (wrong++ == 0) fprintf(stderr, "rank %d: wrong, first in: %s\n", rank, check_name);
}

/* More gets at once than a NIC has room for registered memory, each into memory of its own. */
static void many_gets(void) {
  enum { kGets = 18000, kEach = 4096 };
  int32_t* memory = NULL;
  MPI_Win window;
  MPI_Win_allocate(kEach * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  for (int i = 0; i < kEach; ++i) memory[i] = rank * 100000 + i;
  const int from = (rank + 1) % ranks;
  int32_t* into = rank == 0 ? malloc((size_t)kGets * kEach * sizeof *into) : NULL;
  MPI_Win_fence(0, window);
  for (size_t i = 0; rank == 0 && i < kGets; ++i)
    MPI_Get(into + i * kEach, kEach, MPI_INT32_T, from, 0, kEach, MPI_INT32_T, window);
  MPI_Win_fence(0, window);
  for (size_t i = 0; rank == 0 && i < (size_t)kGets * kEach; i += 511)
    expect(into[i] == from * 100000 + (int32_t)(i % kEach), "a get of many");
  MPI_Win_free(&window);
  free(into);
}

/* Memory that the ranks of a host share: one rank writes it, and its neighbour reads it. */
static void shared_window(void) {
  MPI_Comm here;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  int own = 0, count = 0, unit = 0;
  MPI_Comm_rank(here, &own);
  MPI_Comm_size(here, &count);
  MPI_Aint bytes = 0;
  int64_t *mine = NULL, *other = NULL;
  MPI_Win window;
  MPI_Win_allocate_shared(sizeof *mine, sizeof *mine, MPI_INFO_NULL, here, &mine, &window);
  MPI_Win_shared_query(window, (own + 1) % count, &bytes, &unit, &other);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
  *mine = 1000 + own;
  MPI_Win_sync(window);
  MPI_Barrier(here);
  MPI_Win_sync(window);
  expect(bytes == sizeof *mine && *other == 1000 + (own + 1) % count, "a load from a shared window");
  MPI_Barrier(here);
  const int64_t increment = 1;
  int64_t before = 0;
  for (int i = 0; i < 100; ++i) MPI_Fetch_and_op(&increment, &before, MPI_INT64_T, 0, 0, MPI_SUM, window);
  MPI_Win_unlock_all(window);
  MPI_Barrier(here);
  if (own == 0) expect(*mine == 1000 + 100 * count, "the sum of a shared window");
  MPI_Win_free(&window);
  MPI_Comm_free(&here);
}

/* A window over memory of MPI, or over the program's own: an MPI may use different transports for the two. */
enum Kind { allocated, created };

static MPI_Win make_window(enum Kind kind, size_t bytes, size_t unit, void* memory) {
  void** const base = memory;
  MPI_Win window;
  if (kind == allocated) {
    MPI_Win_allocate((MPI_Aint)bytes, (int)unit, MPI_INFO_NULL, MPI_COMM_WORLD, base, &window);
  } else {
    *base = malloc(bytes);
    MPI_Win_create(*base, (MPI_Aint)bytes, (int)unit, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  }
  return window;
}

static void free_window(enum Kind kind, MPI_Win* window, void* memory) {
  MPI_Win_free(window);
  if (kind == created) free(memory);
}

/* Each rank adds to one number of rank 0, for each type, and the values before are all different. */
#define ADD_UP(type, mpi_type)                                                                  \
  do {                                                                                          \
    enum { kTurns = 20 };                                                                       \
    type *memory = NULL, increment = 1, before = 0;                                             \
    int seen[kTurns * 8] = {0}, all[kTurns * 8];                                                \
    MPI_Win window = make_window(kind, 2 * sizeof(type), sizeof(type), &memory);                \
    memory[0] = 0, memory[1] = 77;                                                              \
    MPI_Barrier(MPI_COMM_WORLD);                                                                \
    MPI_Win_lock_all(0, window);                                                                \
    for (int i = 0; i < kTurns; ++i) {                                                          \
      MPI_Fetch_and_op(&increment, &before, mpi_type, 0, 0, MPI_SUM, window);                   \
      MPI_Win_flush(0, window);                                                                 \
      const int place = (int)before;                                                            \
      expect(place >= 0 && place < kTurns * ranks, "a value before " #type);                    \
      if (place >= 0 && place < kTurns * ranks) ++seen[place];                                  \
    }                                                                                           \
    MPI_Win_unlock_all(window);                                                                 \
    MPI_Allreduce(seen, all, kTurns * ranks, MPI_INT, MPI_SUM, MPI_COMM_WORLD);                 \
    for (int i = 0; i < kTurns * ranks; ++i) expect(all[i] == 1, "each value once, of " #type); \
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);                                                \
    if (rank == 0) expect(memory[0] == kTurns * ranks && memory[1] == 77, "a sum of " #type);   \
    MPI_Win_unlock(0, window);                                                                  \
    free_window(kind, &window, memory);                                                         \
  } while (0)

static void atomics_of_all_sizes(void) {
  for (enum Kind kind = allocated; kind <= created; ++kind) {
    ADD_UP(signed char, MPI_SIGNED_CHAR);
    ADD_UP(short, MPI_SHORT);
    ADD_UP(int, MPI_INT);
    ADD_UP(long, MPI_LONG);
    ADD_UP(float, MPI_FLOAT);
    ADD_UP(double, MPI_DOUBLE);
  }
}

/* Atomics that a component supports if it knows only words of 4 and 8 bytes. */
static void atomics_of_words(void) {
  for (enum Kind kind = allocated; kind <= created; ++kind) {
    ADD_UP(int, MPI_INT);
    ADD_UP(long, MPI_LONG);
  }
}

/* The largest value of all ranks and its rank, at rank 0. */
#define LARGEST(type, mpi_type)                                                                      \
  do {                                                                                               \
    struct Pair {                                                                                    \
      type value;                                                                                    \
      int index;                                                                                     \
    } *memory = NULL, mine = {.value = (type)(10 + rank), .index = rank};                            \
    MPI_Win window = make_window(kind, sizeof *memory, sizeof *memory, &memory);                     \
    memory->value = -1, memory->index = -1;                                                          \
    MPI_Win_fence(0, window);                                                                        \
    MPI_Accumulate(&mine, 1, mpi_type, 0, 0, 1, mpi_type, MPI_MAXLOC, window);                       \
    MPI_Win_fence(0, window);                                                                        \
    if (rank == 0) expect(memory->value == 9 + ranks && memory->index == ranks - 1, "a " #mpi_type); \
    free_window(kind, &window, memory);                                                              \
  } while (0)

/* Pairs of a vector type, three of every five, from rank 0 to the last one. */
static void exchange_vector(enum Kind kind) {
  enum { kPairs = 25, kEach = 5, kTaken = 3 };
  struct Pair {
    long double value;
    int index;
  } *memory = NULL, mine[kPairs];
  MPI_Datatype vector;
  MPI_Type_vector(kPairs / kEach, kTaken, kEach, MPI_LONG_DOUBLE_INT, &vector);
  MPI_Type_commit(&vector);
  MPI_Win window = make_window(kind, sizeof mine, sizeof *memory, &memory);
  for (int i = 0; i < kPairs; ++i) {
    memory[i].value = 0, memory[i].index = 0;
    mine[i].value = i + 1, mine[i].index = i;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, ranks - 1, 0, window);
  if (rank == 0) MPI_Accumulate(mine, 1, vector, ranks - 1, 0, 1, vector, MPI_MAXLOC, window);
  MPI_Win_unlock(ranks - 1, window);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kPairs && rank == ranks - 1; ++i) {
    const int taken = i % kEach < kTaken;
    expect(memory[i].value == (taken ? i + 1 : 0) && memory[i].index == (taken ? i : 0), "pairs of a vector");
  }
  free_window(kind, &window, memory);
  MPI_Type_free(&vector);
}

static void pairs_of_a_vector(void) {
  for (enum Kind kind = allocated; kind <= created; ++kind) exchange_vector(kind);
}

/* Without MPI_SHORT_INT, which Open MPI 4.1 sometimes gets wrong without Peerway, too. */
static void pairs(void) {
  for (enum Kind kind = allocated; kind <= created; ++kind) {
    LARGEST(float, MPI_FLOAT_INT);
    LARGEST(long, MPI_LONG_INT);
    LARGEST(double, MPI_DOUBLE_INT);
  }
}

/* Many pieces of memory of rank 0, each attached separately, in which all ranks count. */
static void many_attached(void) {
  enum { kPieces = 40 };
  double* pieces[kPieces] = {NULL};
  MPI_Aint at[kPieces];
  MPI_Win window;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int i = 0; i < kPieces && rank == 0; ++i) {
    MPI_Alloc_mem(sizeof **pieces, MPI_INFO_NULL, &pieces[i]);
    *pieces[i] = i;
    MPI_Win_attach(window, pieces[i], sizeof **pieces);
    MPI_Get_address(pieces[i], &at[i]);
  }
  MPI_Bcast(at, kPieces, MPI_AINT, 0, MPI_COMM_WORLD);
  for (int i = 0; i < kPieces; ++i) {
    const double increment = 1;
    double before = -1;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Fetch_and_op(&increment, &before, MPI_DOUBLE, 0, at[i], MPI_SUM, window);
    MPI_Win_unlock(0, window);
    expect(before >= i && before < i + ranks, "what was in an attached piece");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kPieces && rank == 0; ++i) {
    expect(*pieces[i] == i + ranks, "the sum in an attached piece");
    MPI_Win_detach(window, pieces[i]);
    MPI_Free_mem(pieces[i]);
  }
  MPI_Win_free(&window);
}

/* Memory that is attached to a window after the window was made, and accessed by its address. */
static void dynamic_window(void) {
  enum { kCount = 3000 };
  const int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
  MPI_Win window;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int turn = 0; turn < 3; ++turn) {
    int* memory = malloc(kCount * sizeof *memory);
    int* back = malloc(kCount * sizeof *back);
    int* data = malloc(kCount * sizeof *data);
    for (int i = 0; i < kCount; ++i) memory[i] = -1, data[i] = rank * 10000 + i + turn;
    MPI_Win_attach(window, memory, kCount * sizeof *memory);
    MPI_Aint here, there;
    MPI_Get_address(memory, &here);
    MPI_Sendrecv(&here, 1, MPI_AINT, from, 0, &there, 1, MPI_AINT, to, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_lock_all(0, window);
    MPI_Put(data, kCount, MPI_INT, to, there, kCount, MPI_INT, window);
    MPI_Win_flush(to, window);
    MPI_Accumulate(data, 10, MPI_INT, to, there, 10, MPI_INT, MPI_SUM, window);
    MPI_Win_flush(to, window);
    MPI_Get(back, kCount, MPI_INT, to, there, kCount, MPI_INT, window);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < kCount; ++i) {
      expect(back[i] == data[i] * (i < 10 ? 2 : 1), "a get from a dynamic window");
      const int sent = from * 10000 + i + turn;
      expect(memory[i] == sent * (i < 10 ? 2 : 1), "a put to a dynamic window");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(window, memory);
    free(memory);
    free(back);
    free(data);
  }
  MPI_Win_free(&window);
}

static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Two ranks on one CPU: a rank that waits yields the CPU to the rank that has the answer. A rank that
 * polls until the CPU is taken away uses up its time slice, 0.75 ms or more, for every message, and the
 * answer comes no sooner. Only tries in which the two had the CPU to themselves count; on a machine that is
 * never quiet there may be none. */
static void one_cpu(void) {
  enum { kTries = 200, kTrips = 20 };
  cpu_set_t before, target;
  int number = 0, it = 0, other = 1 - rank, counted = 0;
  const double most = 5e-4; /* s of CPU time: well below the two time slices of a round trip */
  double best = 1e9;
  sched_getaffinity(0, sizeof before, &before);
  while (!CPU_ISSET(number, &before)) ++number;
  MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
  CPU_ZERO(&target);
  CPU_SET(number, &target);
  expect(sched_setaffinity(0, sizeof target, &target) == 0, "moving to another CPU");
  for (int try = 0; try < kTries && best > most; ++try) {
    const double begun = seconds(CLOCK_THREAD_CPUTIME_ID), since = seconds(CLOCK_MONOTONIC);
    for (int i = 0; i < kTrips && rank < 2; ++i) {
      if (rank == 0) MPI_Send(&i, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
      MPI_Recv(&it, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(&i, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
      expect(it == i, "a message on one CPU");
    }
    double wall = seconds(CLOCK_MONOTONIC) - since, both = 0;
    const double used = rank < 2 ? seconds(CLOCK_THREAD_CPUTIME_ID) - begun : 0;
    MPI_Allreduce(&used, &both, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(&wall, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (wall > 1.2 * both) continue; /* somebody else had the CPU */
    ++counted;
    if (both / 2 / kTrips < best) best = both / 2 / kTrips;
  }
  if (counted > 0 && best > most) fprintf(stderr, "a round trip took %.6f s of CPU time at best\n", best);
  expect(counted == 0 || best <= most, "the time of a round trip on one CPU");
  sched_setaffinity(0, sizeof before, &before);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } scenarios[] = {{"many_gets", many_gets},
                   {"shared_window", shared_window},
                   {"atomics_of_all_sizes", atomics_of_all_sizes},
                   {"atomics_of_words", atomics_of_words},
                   {"pairs", pairs},
                   {"pairs_of_a_vector", pairs_of_a_vector},
                   {"dynamic_window", dynamic_window},
                   {"many_attached", many_attached},
                   {"one_cpu", one_cpu}};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; ++i) {
    int chosen = argc == 1;
    for (int j = 1; j < argc; ++j) chosen |= strcmp(argv[j], scenarios[i].name) == 0;
    if (chosen) scenarios[i].run();
  }
  long all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("ranks %d errors %ld\n", ranks, all);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}
