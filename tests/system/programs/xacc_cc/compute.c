/* Directives of OpenACC as threads: loops, reductions, what is private, atomics, and data clauses that cost
 * nothing. */
#include <openacc.h>

#include "check.h"

#define N 40
#define M 17

#pragma xmp nodes p(*)
#pragma xmp template t(0 : N - 1)
#pragma xmp distribute t(block) onto p
static double a[N][M], b[N][M];
#pragma xmp align a[i][*] with t(i)
#pragma xmp align b[i][*] with t(i)

#pragma acc routine seq
static double twice(double v) { return 2 * v; }

static void nests(void) {
  int i, j, k;
  double sum = 0, most = -1, scratch = 5;
  long bits = 0;
#pragma acc data copy(a) create(b)
  {
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop collapse(2) vector_length(32) present(a)
    for (i = 0; i < N; i++)
      for (j = 0; j < M; j++) a[i][j] = i * M + j;
#pragma acc parallel loop gang reduction(+ : sum) reduction(max : most)
#pragma xmp loop(i) on t(i)
    for (i = 0; i < N; i++) {
      scratch = 0;
#pragma acc loop vector
      for (j = 0; j < M; j++) {
        for (k = 0; k < 3; k++) scratch += twice(a[i][j]) / 6;
        if (a[i][j] > most) most = a[i][j];
      }
      sum += scratch;
    }
#pragma acc update host(a)
#pragma acc wait
  }
#pragma xmp reduction(+ : sum)
#pragma xmp reduction(max : most)
  CHECK(sum - N * M * (N * M - 1) / 2.0 < 1e-6 && N * M * (N * M - 1) / 2.0 - sum < 1e-6);
  CHECK(most == N * M - 1);
#pragma acc kernels
  {
#pragma acc loop independent reduction(| : bits)
    for (i = 0; i < 50; i++) bits |= 1L << i;
  }
  CHECK(bits == (1L << 50) - 1);
}

static void counts(void) {
  int count = 0, hits[4] = {0};
#pragma acc enter data copyin(hits)
#pragma acc parallel loop copy(count) private(count) present(hits)
  for (int i = 0; i < 100; i++) {
    count = i % 4;
#pragma acc atomic update
    hits[count]++;
  }
#pragma acc exit data copyout(hits)
  for (int k = 0; k < 4; k++) CHECK(hits[k] == 25);
  CHECK(count == 0);
  int shared = 0;
#pragma acc parallel loop copy(shared)
  for (int i = 0; i < 100; i++) {
#pragma acc atomic
    shared += 1;
  }
  CHECK(shared == 100);
}

/* A block of a GPU does a row, its threads share the elements. */
static void rows(void) {
  double part[M], whole = 0;
  int place[N * M], next = 0;
#pragma acc enter data copyin(part, place, next)
#pragma acc parallel loop gang vector_length(32) reduction(+ : whole) present(part)
  for (int j = 0; j < M; j++) {
    double sum = 0, most = -1;
    part[j] = 1;
#pragma acc loop vector reduction(+ : sum) reduction(max : most)
    for (int i = 0; i < N; i++) {
      sum += i * j;
      most = i > most ? i : most;
    }
    part[j] += sum + most;
    whole += sum;
  }
#pragma acc parallel loop present(place, next)
  for (int i = 0; i < N * M; i++) {
    int mine;
#pragma acc atomic capture
    mine = next++;
    place[mine] = i;
  }
#pragma acc exit data copyout(part, place, next)
  int seen[N * M] = {0};
  for (int i = 0; i < N * M; i++) seen[place[i]]++;
  for (int i = 0; i < N * M; i++) CHECK(seen[i] == 1);
  for (int j = 0; j < M; j++) CHECK(part[j] == N * (N - 1) / 2.0 * j + N);
  CHECK(next == N * M && whole == N * (N - 1) / 2.0 * (M * (M - 1) / 2.0));
}

static void triangle(void) {
  long sum = 0;
#pragma acc parallel loop collapse(2) reduction(+ : sum)
  for (int i = 0; i < 30; i++)
    for (int j = 0; j < 30; j++) sum += i > j;
#pragma acc parallel loop reduction(+ : sum)
  for (int i = 0; i < 30; i++) {
#pragma acc loop seq
    for (int j = i; j < 30; j++) sum += 1;
  }
  CHECK(sum == 30 * 29 / 2 + 31 * 30 / 2);
}

void compute(void) {
  nests();
  counts();
  rows();
  triangle();
  CHECK(acc_get_num_devices(acc_device_host) >= 0);
}
