/* Loops whose iterations the host counts before they begin: with every kind of step, few and many of them,
 * and a counter that stays on the host or is used on the device. The results are the same in every form. */
#include <stdio.h>
#include <xmp.h>

#define N 24

#pragma xmp nodes nodes(*)
#pragma xmp template t(0 : N - 1)
#pragma xmp distribute t(block) onto nodes
static double x[N], y[N];
#pragma xmp align[i] with t(i)::x, y
#pragma xmp shadow[1] ::x

static int rounds_of_all = 7;

static double sum_of(void) {
  double sum = 0;
#pragma xmp loop on t(i) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum) present(y)
  for (int i = 0; i < N; i++) sum += y[i];
  return sum;
}

static void smooth(double weight) {
#pragma xmp reflect(x) width(/ periodic / 1 : 1) acc
#pragma xmp loop on t(i)
#pragma acc parallel loop present(x, y)
  for (int i = 0; i < N; i++) y[i] = (x[i - 1] + x[i + 1]) * 0.375 + x[i] * weight;
#pragma xmp loop on t(i)
#pragma acc parallel loop present(x, y)
  for (int i = 0; i < N; i++) x[i] = y[i];
}

static void few(double value) {
#pragma xmp loop on t(i)
#pragma acc parallel loop present(x)
  for (int i = 0; i < 4; i++) x[i] = x[i] * 0.5 + value;
}

static void report(const char* name, long counter, double value) {
  const double sum = sum_of();
#pragma xmp task on nodes(1)
  printf("%s %ld %.17g %.17g\n", name, counter, value, sum);
}

/* Nothing lives on the device: the counter stays on the host. */
static void plain(int rounds) {
  int n;
  for (n = 0; n < rounds; n++) smooth(0.25);
  report("plain", n, 0);
}

/* A step down, by two; a bound that several values make. */
static void down(int from, int to) {
  long n;
  for (n = from; n >= to - 1; n -= 2) smooth(0.125);
  report("down", n, 0);
}

/* != and a step that is no number. */
static void until(unsigned last, unsigned step) {
  unsigned n;
  for (n = 0; n != last; n += step) smooth(0.25);
  report("until", n, 0);
}

/* A step that is no sum, and a bound at file scope. */
static void doubled(void) {
  unsigned char n;
  for (n = 1; n <= 100 + rounds_of_all; n *= 2) smooth(0.25);
  report("doubled", n, 0);
}

/* A sum and arithmetic; the counter stays on the host. */
static void scaled(int rounds) {
  double scale = 1;
  int n;
  for (n = 0; n < rounds; ++n) {
    smooth(scale);
    scale = 24 / (sum_of() + 30);
  }
  report("scaled", n, scale);
}

/* The counter in a kernel, and in arithmetic. */
static void counting(int rounds) {
  double total = 0;
  int n;
  for (n = 1; n < rounds; n++) {
#pragma xmp loop on t(i)
#pragma acc parallel loop present(y)
    for (int i = 0; i < N; i++) y[i] = y[i] * 0.5 + n + i % n;
    total += n * 0.5;
  }
  report("counting", n, total);
}

/* Many launches in an iteration, of which a node without elements of the first few has fewer. */
static void uneven(int rounds) {
  int n;
  for (n = 0; n < rounds; n++) {
    smooth(0.25);
    few(1), few(2), few(3), few(4), few(5), few(6), few(7), few(8), few(9);
  }
  report("uneven", n, 0);
}

/* The host cannot count: the body changes the bound, or the counter. */
static void changing(int rounds) {
  double sum = 0;
  int n;
  for (n = 0; n < rounds; n++) {
    sum = sum_of();
    rounds = rounds - 1;
  }
  report("changing", n, sum + rounds);
  for (n = 0; n < 20; n++) {
    sum += sum_of();
    n = n + 1;
  }
  report("skipping", n, sum);
}

int main(void) {
#pragma xmp loop on t(i)
  for (int i = 0; i < N; i++) x[i] = y[i] = 1 + i % 5;
#pragma acc data copy(x, y)
  {
    for (int rounds = 0; rounds < 6; rounds++) plain(rounds), scaled(rounds), counting(rounds);
    for (int rounds = 1; rounds < 21; rounds++) uneven(rounds);
    plain(40), plain(40), plain(700), plain(41), scaled(300), scaled(25), scaled(25), counting(90);
    for (int again = 0; again < 3; again++) down(9 + again, 2), until(12, 3), doubled(), changing(9);
  }
  return 0;
}
