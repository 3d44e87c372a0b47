/* Directives of OpenACC as threads: loops, reductions, private variables, atomics, and data clauses that
 * cost nothing. */
#include <complex.h>
#include <math.h>
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

struct ends {
  int low, high;
};

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
  struct ends ends = {3, 4};
#pragma acc kernels
  ends.high = 7;
  CHECK(ends.low == 3 && ends.high == 7);
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

/* A block of a GPU executes a row, and its threads share the elements. */
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

/* A warp executes a row of some hundred elements, whose loop has each kind of index. */
static void rows_of_warps(void) {
  enum { ROWS = 5, LONG = 211 };
  int value[LONG];
  long up[ROWS], down[ROWS], turned[ROWS], steps[ROWS], wrapping[ROWS], narrow[ROWS];
  for (int i = 0; i < LONG; i++) value[i] = i * i % 17 - 3;
#pragma acc parallel loop vector_length(32) copyin(value) copyout(up, down, turned, steps)
  for (int j = 0; j < ROWS; j++) {
    long a = 0, b = -1000, c = 0, d = 1;
#pragma acc loop vector reduction(+ : a)
    for (unsigned i = j; i < LONG - 2u * j; i++) a += value[i];
#pragma acc loop vector reduction(max : b)
    for (long i = LONG - 1; i >= 7 * j; i--) b = value[i] + i > b ? value[i] + i : b;
#pragma acc loop vector reduction(+ : c)
    for (int i = 0; LONG - j > i; ++i)
      if (value[i] % 2) c += i;
#pragma acc loop vector reduction(* : d)
    for (int i = j; i <= 150; i += 3 + j) d *= value[i] % 2 ? 1 : -1;
    up[j] = a, down[j] = b, turned[j] = c, steps[j] = d;
  }
  /* A thread executes these, because an index that goes on by many steps would wrap. */
#pragma acc parallel loop vector_length(32) copyin(value) copyout(wrapping, narrow)
  for (int j = 0; j < ROWS; j++) {
    long f = 0, g = 0;
#pragma acc loop vector reduction(+ : f)
    for (unsigned i = 90; i > (unsigned)j; i--) f += value[i];
#pragma acc loop vector reduction(+ : g)
    for (unsigned char i = j; i < 205; i++) g += value[i];
    wrapping[j] = f, narrow[j] = g;
  }
  for (int j = 0; j < ROWS; j++) {
    long a = 0, b = -1000, c = 0, d = 1, f = 0, g = 0;
    for (int i = 0; i < LONG; i++) {
      if (i >= j && i < LONG - 2 * j) a += value[i];
      if (i >= 7 * j && value[i] + i > b) b = value[i] + i;
      if (i < LONG - j && value[i] % 2) c += i;
      if (i >= j && i <= 150 && (i - j) % (3 + j) == 0 && value[i] % 2 == 0) d = -d;
      if (i > j && i <= 90) f += value[i];
      if (i >= j && i < 205) g += value[i];
    }
    CHECK(up[j] == a && down[j] == b && turned[j] == c && steps[j] == d);
    CHECK(wrapping[j] == f && narrow[j] == g);
  }
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

/* Cyclic arrays and loops in kernels: blocks of one and of three, offsets, steps, code between the levels. */
#pragma xmp template dealt(0 : N - 1)
#pragma xmp distribute dealt(cyclic) onto p
#pragma xmp template packs(1 : N + 2)
#pragma xmp distribute packs(cyclic(3)) onto p
static double dealt_values[N], table[5][N];
#pragma xmp align dealt_values[i] with dealt(i)
#pragma xmp align table[*][i] with packs(i + 2)

static void cyclic(void) {
  double sum = 0;
  int first = 3;
#pragma acc data create(dealt_values, table)
  {
#pragma xmp loop(i) on dealt(i)
#pragma acc parallel loop
    for (int i = 0; i < N; i++) dealt_values[i] = 2 * i;
#pragma xmp loop(i) on packs(i + 2)
#pragma acc parallel loop collapse(2)
    for (int k = 0; k < 5; k++)
      for (int i = 0; i < N; i++) table[k][i] = 100 * k + i;
#pragma xmp loop(i) on dealt(i) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum)
    for (int i = first; i <= N - 2; i += 4) sum += dealt_values[i];
#pragma xmp loop(i) on packs(i + 2) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum)
    for (int k = 1; k < 5; k++)
      for (int i = 0; i < N; i += 2) sum += table[k][i];
  }
  double wanted = 0;
  for (int i = first; i <= N - 2; i += 4) wanted += 2 * i;
  for (int k = 1; k < 5; k++)
    for (int i = 0; i < N; i += 2) wanted += 100 * k + i;
  CHECK(sum == wanted);
}

/* Complex numbers, file-scope constants in a function, and statements beside the loops of a region. */
static const double factors[3] = {0.5, 2, 4};
static double complex field[N], other[N];
#pragma xmp align field[i] with t(i)
#pragma xmp align other[i] with t(i)

static double scaled(double v, int k) { return factors[k] * v; }

static void complex_numbers(void) {
  const double complex turn = 0.5 - 2 * I;
  float complex small[4];
  double size = 0, parts[4] = {0};
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop
  for (int i = 0; i < N; i++) field[i] = scaled(i, i % 3) + 1.5 * I;
#pragma xmp loop(i) on t(i)
#pragma acc parallel loop
  for (int i = 0; i < N; i++) {
    double complex v = conj(field[i]) * turn / 2;
    v += field[i] - 1;
    other[i] = -v * (i == 3 ? cexp(0) : 1);
  }
#pragma acc parallel loop copyout(small)
  for (int i = 0; i < 4; i++) small[i] = i * (1.0f + I);
#pragma xmp loop(i) on t(i) reduction(+ : size)
#pragma acc parallel loop reduction(+ : size)
  for (int i = 0; i < N; i++) size += cabs(other[i]) + creal(field[i]) - cimag(field[i]);
  double wanted = 0;
  for (int i = 0; i < N; i++) {
    const double complex f = scaled(i, i % 3) + 1.5 * I, v = conj(f) * turn / 2 + f - 1;
    wanted += cabs(v) + creal(f) - cimag(f);
  }
  CHECK(fabs(size - wanted) < 1e-9 * wanted);
  CHECK(crealf(small[3]) == 3 && cimagf(small[3]) == 3);
  double complex sum = 2 * I, product = 1;
  float complex least = 0;
#pragma xmp loop(i) on t(i) reduction(+ : sum, least)
#pragma acc parallel loop reduction(+ : sum, least)
  for (int i = 0; i < N; i++) {
    sum += i * I + 1;
    least -= (float)i;
  }
#pragma acc parallel loop reduction(* : product)
  for (int i = 0; i < 5; i++) product *= 1 + 2 * I;
  CHECK(creal(sum) == N && cimag(sum) == N * (N - 1) / 2 + 2);
  CHECK(crealf(least) == -N * (N - 1) / 2 && cimagf(least) == 0);
  CHECK(creal(product) == 41 && cimag(product) == -38);
  int last;
#pragma acc parallel copy(parts)
  {
    last = 2;
#pragma acc loop
    for (int i = 0; i < 4; i++) parts[i] = last;
    last = last + 1;
#pragma acc loop
    for (int i = 0; i < last; i++) parts[i] += 1;
  }
  CHECK(parts[2] == 3 && parts[3] == 2);
#pragma acc parallel copy(parts)
  {
    parts[0] = 5;
    for (int k = 1; k < 3; k++) parts[k] = parts[k - 1] + 1;
#pragma acc loop
    for (int i = 0; i < 3; i++) parts[i] *= 2;
    parts[3] = parts[0] + parts[1] + parts[2];
    for (int k = 0; k < 2; k++) {
#pragma acc loop
      for (int i = 0; i < 4; i++) parts[i] += 1;
    }
  }
  CHECK(parts[0] == 12 && parts[2] == 16 && parts[3] == 38);
}

/* A variable in acc declare in a function is on the GPU until its block ends, however it is left. */
static int* declared_at;
static int declared(int n, int* out) {
  static int square[10];
#pragma acc declare create(square)
  declared_at = square;
#pragma acc parallel loop present(square)
  for (int i = 0; i < 10; i++) square[i] = i * i;
#pragma acc parallel loop present(square) copyout(out[0 : 10])
  for (int i = 0; i < 10; i++) out[i] = square[9 - i];
  if (n > 1) return n;
  return 1;
}

static void declarations(void) {
  for (int time = 1; time < 3; time++) {
    int out[10] = {0};
    CHECK(declared(time, out) == time);
    CHECK(out[0] == 81 && out[9] == 0 && out[7] == 4);
    CHECK(acc_get_device_type() == acc_device_host || !acc_is_present(declared_at, 10 * sizeof(int)));
  }
}

void compute(void) {
  declarations();
  cyclic();
  complex_numbers();
  nests();
  counts();
  rows();
  rows_of_warps();
  triangle();
  CHECK(acc_get_num_devices(acc_device_host) >= 0);
}
