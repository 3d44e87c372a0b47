/* Point-to-point latency and bandwidth of an MPI, by message size, with nothing but the MPI standard; what
 * arrives is checked. Rank 0 prints one line of JSON for each size; the exit status is 1 when a byte was
 * wrong.
 *
 *   pingpong latency SIZES ITERATIONS
 *     Half of a round trip.
 *   pingpong bandwidth SIZES WINDOWS
 *     Many messages at once to rank 1, which answers the last one; all from one buffer to another.
 *   pingpong fresh SIZES WINDOWS
 *     The same, each message in memory of its own.
 *
 *   pingpong put SIZES ITERATIONS
 *   pingpong get SIZES ITERATIONS
 *     One at a time to or from a window of rank 1, until it is flushed; rank 1 is in a barrier.
 *
 * SIZES are bytes with commas between. Times are of each iteration; some, before, are not counted. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kMostMessages = 64, kWindowBytes = 16 << 20 };

static int rank;
static long wrong;

static void* need(size_t bytes) {
  void* memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  return memory;
}

static uint64_t word_of(uint64_t seed, size_t at) { return (seed + at) * 0x9e3779b97f4a7c15ull; }

/* Data that is different in every iteration and at every place. */
static void fill(uint8_t* data, size_t bytes, uint64_t seed) {
  for (size_t at = 0; at < bytes; at += 8) {
    const uint64_t word = word_of(seed, at);
    memcpy(data + at, &word, bytes - at < 8 ? bytes - at : 8);
  }
}

static void check(const uint8_t* data, size_t bytes, uint64_t seed) {
  for (size_t at = 0; at < bytes; at += 8) {
    const uint64_t word = word_of(seed, at);
    wrong += memcmp(data + at, &word, bytes - at < 8 ? bytes - at : 8) != 0;
  }
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double percentile(const double* sorted, int count, double part) {
  const double at = part * (count - 1);
  const int low = (int)at;
  const double rest = at - low;
  return sorted[low] + (low + 1 < count ? rest * (sorted[low + 1] - sorted[low]) : 0);
}

/* `messages` were sent one way in each of the times. */
static void report(const char* test, size_t bytes, double* us, int count, int messages) {
  long all_wrong = 0;
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += us[i] /= messages;
  qsort(us, (size_t)count, sizeof *us, compare);
  printf(
      "{\"test\":\"%s\",\"bytes\":%zu,\"iterations\":%d,\"messages\":%d,\"p50_us\":%.4f,\"p99_us\":%.4f,"
      "\"min_us\":%.4f,\"mean_us\":%.4f,\"wrong\":%ld}\n",
      test, bytes, count, messages, percentile(us, count, 0.5), percentile(us, count, 0.99), us[0],
      sum / count, all_wrong);
  fflush(stdout);
}

static void latency(size_t bytes, int count) {
  uint8_t *out = need(bytes), *in = need(bytes);
  double* us = need((size_t)count * sizeof *us);
  const int warm = count / 10;
  for (int i = -warm; i < count; ++i) {
    if (rank != 0) { /* what came goes back: rank 0 checks both ways */
      MPI_Recv(in, (int)bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(in, (int)bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
      continue;
    }
    const uint64_t seed = (uint64_t)(i + warm + 1) << 32;
    fill(out, bytes, seed);
    memset(in, 0, bytes);
    const double start = now_us();
    MPI_Send(out, (int)bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(in, (int)bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (i >= 0) us[i] = (now_us() - start) / 2;
    check(in, bytes, seed);
  }
  report("mpi_latency", bytes, us, count, 1);
  free(out);
  free(in);
  free(us);
}

static void window_latency(size_t bytes, int count, int put) {
  uint8_t *mine = need(bytes), *there = need(bytes);
  double* us = need((size_t)count * sizeof *us);
  MPI_Win window;
  MPI_Win_create(there, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  const int before = count / 10 + 1;
  if (rank == 1 && !put) fill(there, bytes, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  for (int i = -before; rank == 0 && i < count; ++i) {
    if (put) fill(mine, bytes, (uint64_t)(i + before));
    const double start = now_us();
    if (put)
      MPI_Put(mine, (int)bytes, MPI_BYTE, 1, 0, (int)bytes, MPI_BYTE, window);
    else
      MPI_Get(mine, (int)bytes, MPI_BYTE, 1, 0, (int)bytes, MPI_BYTE, window);
    MPI_Win_flush(1, window);
    if (i >= 0) us[i] = now_us() - start;
    if (!put) check(mine, bytes, 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1 && put) check(there, bytes, (uint64_t)(count + before - 1));
  report(put ? "mpi_put" : "mpi_get", bytes, us, count, 1);
  MPI_Win_free(&window);
  free(mine);
  free(there);
  free(us);
}

/* `step`: from the buffer of a message to that of the next one. */
static double window(uint8_t* data, size_t bytes, size_t step, int messages) {
  MPI_Request requests[kMostMessages];
  char done = 0;
  for (int m = 0; rank == 1 && m < messages; ++m)
    MPI_Irecv(data + (size_t)m * step, (int)bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[m]);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now_us();
  for (int m = 0; rank == 0 && m < messages; ++m)
    MPI_Isend(data + (size_t)m * step, (int)bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[m]);
  MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
  if (rank == 0)
    MPI_Recv(&done, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else
    MPI_Send(&done, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
  return now_us() - start;
}

static void bandwidth(size_t bytes, int count, int fresh) {
  const size_t fitting = kWindowBytes / bytes;
  const int messages = fitting > kMostMessages ? kMostMessages : fitting < 1 ? 1 : (int)fitting;
  const size_t all = fresh ? bytes * (size_t)messages : bytes;
  uint8_t* data = need(all);
  double* us = need((size_t)count * sizeof *us);
  const int warm = count / 10 + 1;
  for (int i = -warm; i < count; ++i) {
    const uint64_t seed = (uint64_t)(i + warm + 1) << 32;
    if (rank == 0)
      fill(data, all, seed);
    else
      memset(data, 0, all);
    const double took = window(data, bytes, fresh ? bytes : 0, messages);
    if (i >= 0) us[i] = took;
    if (rank == 1) check(data, all, seed);
  }
  report(fresh ? "mpi_fresh_bw" : "mpi_bw", bytes, us, count, messages);
  free(data);
  free(us);
}

int main(int argc, char** argv) {
  int ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* test = argc == 4 ? argv[1] : "";
  const int count = argc == 4 ? atoi(argv[3]) : 0;
  const int fresh = strcmp(test, "fresh") == 0, late = strcmp(test, "latency") == 0;
  const int put = strcmp(test, "put") == 0, get = strcmp(test, "get") == 0;
  if (ranks != 2 || count < 1 || (!fresh && !late && !put && !get && strcmp(test, "bandwidth") != 0)) {
    if (rank == 0)
      fprintf(stderr, "usage, with 2 ranks: pingpong latency|bandwidth|fresh|put|get SIZES ITERATIONS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  for (char* at = argv[2]; *at != '\0';) {
    const unsigned long long bytes = strtoull(at, &at, 10);
    if (bytes < 1 || bytes > 1 << 30 || (*at != ',' && *at != '\0')) MPI_Abort(MPI_COMM_WORLD, 2);
    if (late)
      latency((size_t)bytes, count);
    else if (put || get)
      window_latency((size_t)bytes, count, put);
    else
      bandwidth((size_t)bytes, count, fresh);
    if (*at == ',') ++at;
  }
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
