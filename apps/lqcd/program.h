/* The parts of each program outside the mathematics: options, clock, results, solution for unit links.
 *
 * Results go to stdout, one JSON object per line; a table for people goes to stderr. Only the first
 * process prints; `first` says whether this is it. C and C++. */
#ifndef LQCD_PROGRAM_H
#define LQCD_PROGRAM_H

#include <time.h>
#ifdef _OPENACC
#include <openacc.h>
#endif

#include "gauge.h"

struct options {
  struct gauge gauge;
  int sources; /* of the 12: 3 colours of 4 spins */
  int repeat;  /* how often each part is timed; 0: not at all */
  int check;
};

/* The sums of all solves, and whether all checks passed. */
struct results {
  const char* program;
  int first, wrong, iterations, solves;
  double seconds;
};

static int count_of(const char* option, const char* word, int least, int most) {
  char* end = 0;
  const long value = word ? strtol(word, &end, 10) : 0;
  if (!word || end == word || *end || value < least || value > most) {
    char todo[60];
    snprintf(todo, sizeof todo, "give a whole number from %d to %d", least, most);
    refuse(option, word ? word : "has no value", todo);
  }
  return (int)value;
}

static struct options options_of(int argc, char** argv) {
  struct options o;
  const char* gauge = "random:1";
  o.sources = 12, o.repeat = 0, o.check = 0;
  for (int i = 1; i < argc; i++) {
    const char* value = i + 1 < argc ? argv[i + 1] : 0;
    if (strcmp(argv[i], "--check") == 0)
      o.check = 1;
    else if (strcmp(argv[i], "--gauge") == 0 && value)
      gauge = value, i++;
    else if (strcmp(argv[i], "--sources") == 0)
      o.sources = count_of(argv[i], value, 0, 12), i++;
    else if (strcmp(argv[i], "--repeat") == 0)
      o.repeat = count_of(argv[i], value, 0, 1000000), i++;
    else
      refuse("option", argv[i], "there are --gauge NAME, --sources N, --repeat N, --check");
  }
  o.gauge = gauge_named(gauge);
  return o;
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The device on which loops of OpenACC run. */
static inline const char* loops_run_on(void) {
#ifdef _OPENACC
  return acc_get_device_type() == acc_device_host ? "CPU" : "GPU";
#else
  return "CPU";
#endif
}

static struct results begin(const char* program, int first, const struct options* o, const char* device) {
  struct results r;
  r.program = program, r.first = first, r.wrong = 0, r.iterations = 0, r.solves = 0, r.seconds = 0;
  if (!first) return r;
  printf("{\"record\": \"program\", \"program\": \"%s\", \"device\": \"%s\", \"layout\": \"%s\", ", program,
         device, LAYOUT);
  printf("\"lattice\": [%d, %d, %d, %d], \"grid\": [%d, %d], ", NX, NY, NZ, NT, PT, PZ);
  printf("\"gauge\": \"%s\", \"kappa\": %g, \"enorm\": %g}\n", o->gauge.name, KAPPA, ENORM);
  fprintf(stderr, "%s on %s: %dx%dx%dx%d sites, %d x %d processes along t and z, gauge field %s\n", program,
          device, NX, NY, NZ, NT, PT, PZ, o->gauge.name);
  return r;
}

static void tell_check(struct results* r, const char* name, double value, double limit) {
  const int ok = value <= limit; /* false for NaN */
  r->wrong += !ok;
  if (!r->first) return;
  printf("{\"record\": \"check\", \"name\": \"%s\", \"value\": %.6e, \"limit\": %.1e, \"ok\": %s}\n", name,
         value, limit, ok ? "true" : "false");
  fprintf(stderr, "  %-34s %.3e, at most %.1e%s\n", name, value, limit, ok ? "" : "   WRONG");
}

/* After a solve; `last` is the index of its last iteration, or -1 if it did not converge. */
static void tell_solve(struct results* r, int colour, int spin, int last, double difference, double seconds) {
  r->iterations += last + 1, r->solves++, r->seconds += seconds;
  r->wrong += last < 0 || !(difference <= 100 * ENORM);
  if (!r->first) return;
  printf("{\"record\": \"solve\", \"colour\": %d, \"spin\": %d, \"nconv\": %d, ", colour, spin, last);
  printf("\"difference\": %.6e, \"seconds\": %.6f}\n", difference, seconds);
  fprintf(stderr, "  colour %d spin %d: %4d iterations, |HHx - b|^2 = %.3e, %.3f s%s\n", colour, spin,
          last + 1, difference, seconds, last < 0 ? "   NOT CONVERGED" : "");
}

/* The correlator of one source with U = 1, on which H H is a multiple of 1 for each momentum. */
static void analytic_correlator(double correlator[NT]) {
  const double turn = 2 * 3.14159265358979323846;
  double wave[NT];
  for (int t = 0; t < NT; t++) correlator[t] = 0;
  for (int z = 0; z < NZ; z++)
    for (int y = 0; y < NY; y++)
      for (int x = 0; x < NX; x++) {
        for (int t = 0; t < NT; t++) wave[t] = 0;
        for (int n = 0; n < NT; n++) {
          const double p[4] = {turn * x / NX, turn * y / NY, turn * z / NZ, turn * n / NT};
          double cosines = 0, squares = 0;
          for (int mu = 0; mu < 4; mu++) cosines += cos(p[mu]), squares += sin(p[mu]) * sin(p[mu]);
          const double a = 1 - 2 * KAPPA * cosines, value = a * a + 4 * KAPPA * KAPPA * squares;
          for (int t = 0; t < NT; t++) wave[t] += cos(p[3] * t) / value / NT;
        }
        for (int t = 0; t < NT; t++) correlator[t] += wave[t] * wave[t] / ((double)NX * NY * NZ);
      }
}

/* Prints the sum of the correlators, and with --check compares it if the solution is known. */
static void tell_correlator(struct results* r, const struct options* o, const double* correlator) {
  if (r->first) {
    printf("{\"record\": \"correlator\", \"sources\": %d, \"values\": [", o->sources);
    for (int t = 0; t < NT; t++) printf("%s%.16e", t ? ", " : "", correlator[t]);
    printf("]}\n");
    for (int t = 0; t < NT; t++) fprintf(stderr, "  t %2d %16.8e\n", t, correlator[t]);
  }
  if (!o->check || !o->sources) return;
  if (o->gauge.kind != GAUGE_UNIT && o->gauge.kind != GAUGE_TRANSFORM) return;
  /* An error dx of x, at most |r| over the smallest eigenvalue, changes |x|^2 of a t by up to 2 |x| |dx|. */
  const double allowed = 2 * sqrt(ENORM) / ((1 - 8 * KAPPA) * (1 - 8 * KAPPA));
  double wanted[NT], worst = 0;
  analytic_correlator(wanted);
  for (int t = 0; t < NT; t++) {
    const double off = fabs(correlator[t] / o->sources - wanted[t]) / (allowed * sqrt(wanted[t]));
    if (worst == worst && !(off <= worst)) worst = off; /* NaN stays */
  }
  tell_check(r, "correlator, part of allowed error", worst, 1);
}

/* Seconds for the hop's kernel, for the hop with its halo, and for the linear algebra of an iteration. */
struct speeds {
  double hop, hop_with_halo, algebra;
};

static void tell_speeds(const struct results* r, const struct options* o, struct speeds s) {
  if (!r->first) return;
  const double iteration = r->iterations ? r->seconds / r->iterations : 0;
  /* Before the first iteration each solve applies H H once more. */
  const double work =
      SITES * (FLOP_ITERATION * (double)r->iterations + r->solves * (2.0 * FLOP_HOP + 4 * SPINOR));
  const double hop_rate = FLOP_HOP * SITES / s.hop, solver_rate = r->seconds > 0 ? work / r->seconds : 0;
  const double halo = s.hop_with_halo - s.hop, bandwidth = BYTES_HOP * SITES / s.hop;
  printf("{\"record\": \"speed\", \"program\": \"%s\", \"repeat\": %d, \"hop_s\": %.9f, ", r->program,
         o->repeat, s.hop);
  printf("\"hop_with_halo_s\": %.9f, \"algebra_s\": %.9f, ", s.hop_with_halo, s.algebra);
  printf("\"iteration_s\": %.9f, \"iterations\": %d, ", iteration, r->iterations);
  printf("\"hop_bytes_per_s\": %.6e, \"hop_flop_per_s\": %.6e, ", bandwidth, hop_rate);
  printf("\"solver_flop_per_s\": %.6e}\n", solver_rate);
  fprintf(stderr, "  hop kernel      %10.2f us  %8.2f GFlop/s  %8.2f GB/s\n", s.hop * 1e6, hop_rate * 1e-9,
          bandwidth * 1e-9);
  fprintf(stderr, "  halo of a hop   %10.2f us more\n", halo * 1e6);
  fprintf(stderr, "  linear algebra  %10.2f us an iteration\n", s.algebra * 1e6);
  fprintf(stderr, "  CG              %10.2f us an iteration  %8.2f GFlop/s\n", iteration * 1e6,
          solver_rate * 1e-9);
}

/* `seconds` is the time of a copy of `bytes`, which are read and written. */
static inline void tell_copy(const struct results* r, double bytes, double seconds) {
  if (!r->first) return;
  printf("{\"record\": \"copy\", \"bytes\": %.0f, \"bytes_per_s\": %.6e}\n", bytes, 2 * bytes / seconds);
  fprintf(stderr, "  a copy          %30.2f GB/s\n", 2e-9 * bytes / seconds);
}

static int end(const struct results* r) {
  if (r->first && r->wrong) fprintf(stderr, "lqcd: %d results are wrong\n", r->wrong);
  fflush(stdout);
  return r->wrong ? 1 : 0;
}

#endif
