/* Gauge fields and random spinors by global site: equal for any grid of processes. C and C++. */
#ifndef LQCD_GAUGE_H
#define LQCD_GAUGE_H

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lattice.h"

enum gauge_kind { GAUGE_UNIT, GAUGE_RANDOM, GAUGE_TRANSFORM, GAUGE_FILE };

/* A file has a lattice of 8 x 8 x 8 x 16 sites (x, y, z, t), which is repeated. */
enum { TILE_XYZ = 8, TILE_T = 16, TILE_WORDS = TILE_XYZ * TILE_XYZ * TILE_XYZ * TILE_T * 4 * LINK };

struct gauge {
  enum gauge_kind kind;
  uint64_t seed;
  const char* name; /* as the user wrote it */
  double* tile;     /* of a file */
};

/* Uniform in (-1, 1): a hash (splitmix64, of Steele, Lea and Flood) of the seed, the site and the index. */
static double random_of(uint64_t seed, uint64_t site, uint64_t index) {
  uint64_t h = seed * 0x9e3779b97f4a7c15u;
  const uint64_t words[2] = {site, index};
  for (int i = 0; i < 2; i++) {
    h += words[i] + 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    h ^= h >> 31;
  }
  return (double)(int64_t)h * (1.0 / 9223372036854775808.0);
}

static uint64_t site_of(int t, int z, int y, int x) {
  return (((uint64_t)t * NZ + (uint64_t)z) * NY + (uint64_t)y) * NX + (uint64_t)x;
}

/* Element k of a random spinor. Sites beyond the lattice wrap around. */
static double random_spinor(uint64_t seed, int t, int z, int y, int x, int k) {
  return random_of(seed, site_of((t + NT) % NT, (z + NZ) % NZ, y, x), (uint64_t)(100 + k));
}

/* A random matrix made unitary: rows 0 and 1 orthonormal, row 2 their conjugate cross product. */
static void random_su3(double u[3][3][2], uint64_t seed, uint64_t site, int which) {
  for (int j = 0; j < 2; j++) {
    for (int c = 0; c < 3; c++)
      for (int r = 0; r < 2; r++)
        u[j][c][r] = random_of(seed, site, (uint64_t)(which * 12 + j * 6 + c * 2 + r));
    double re = 0, im = 0, size = 0; /* of <row 0, row 1> */
    if (j == 1) {
      for (int c = 0; c < 3; c++) {
        re += u[0][c][0] * u[1][c][0] + u[0][c][1] * u[1][c][1];
        im += u[0][c][0] * u[1][c][1] - u[0][c][1] * u[1][c][0];
      }
      for (int c = 0; c < 3; c++) {
        u[1][c][0] -= re * u[0][c][0] - im * u[0][c][1];
        u[1][c][1] -= re * u[0][c][1] + im * u[0][c][0];
      }
    }
    for (int c = 0; c < 3; c++) size += u[j][c][0] * u[j][c][0] + u[j][c][1] * u[j][c][1];
    for (int c = 0; c < 3; c++)
      for (int r = 0; r < 2; r++) u[j][c][r] /= sqrt(size);
  }
  for (int c = 0; c < 3; c++) {
    const int a = (c + 1) % 3, b = (c + 2) % 3;
    u[2][c][0] =
        u[0][a][0] * u[1][b][0] - u[0][a][1] * u[1][b][1] - u[0][b][0] * u[1][a][0] + u[0][b][1] * u[1][a][1];
    u[2][c][1] =
        u[0][b][0] * u[1][a][1] + u[0][b][1] * u[1][a][0] - u[0][a][0] * u[1][b][1] - u[0][a][1] * u[1][b][0];
  }
}

/* G(x) G(x + mu)^dagger, with a random matrix G at each site. */
static void transformed_unit(double u[3][3][2], uint64_t seed, const int at[4], int mu) {
  static const int size[4] = {NX, NY, NZ, NT};
  int next[4] = {at[0], at[1], at[2], at[3]};
  next[mu] = (next[mu] + 1) % size[mu];
  double a[3][3][2], b[3][3][2];
  random_su3(a, seed, site_of(at[3], at[2], at[1], at[0]), 4);
  random_su3(b, seed, site_of(next[3], next[2], next[1], next[0]), 4);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      u[i][j][0] = u[i][j][1] = 0;
      for (int k = 0; k < 3; k++) {
        u[i][j][0] += a[i][k][0] * b[j][k][0] + a[i][k][1] * b[j][k][1];
        u[i][j][1] += a[i][k][1] * b[j][k][0] - a[i][k][0] * b[j][k][1];
      }
    }
}

/* Element k of the link from a site in direction mu (0: x, 1: y, 2: z, 3: t). Sites beyond the lattice
 * wrap around. */
static void link_of(double element[LINK], const struct gauge* gauge, int mu, int t, int z, int y, int x) {
  const int at[4] = {(x + NX) % NX, (y + NY) % NY, (z + NZ) % NZ, (t + NT) % NT};
  double u[3][3][2];
  memset(u, 0, sizeof u);
  if (gauge->kind == GAUGE_UNIT) {
    u[0][0][0] = u[1][1][0] = u[2][2][0] = 1;
  } else if (gauge->kind == GAUGE_RANDOM) {
    random_su3(u, gauge->seed, site_of(at[3], at[2], at[1], at[0]), mu);
  } else if (gauge->kind == GAUGE_TRANSFORM) {
    transformed_unit(u, gauge->seed, at, mu);
  } else {
    const int n = TILE_XYZ;
    const int site = ((at[3] % TILE_T * n + at[2] % n) * n + at[1] % n) * n + at[0] % n;
    memcpy(u, gauge->tile + (site * 4 + mu) * LINK, sizeof u);
  }
  memcpy(element, u, sizeof u);
}

/* Exit with a message: what is wrong, and what to do. */
static void refuse(const char* what, const char* found, const char* todo) {
  fprintf(stderr, "lqcd: %s %s; %s\n", what, found, todo);
  exit(2);
}

static double* read_tile(const char* path) {
  FILE* file = fopen(path, "r");
  if (!file) refuse(path, strerror(errno), "name a file of 8 x 8 x 8 x 16 links");
  double* tile = (double*)malloc(TILE_WORDS * sizeof *tile);
  for (int i = 0; i < TILE_WORDS; i++)
    if (fscanf(file, "%lf", tile + i) != 1) {
      char found[80];
      snprintf(found, sizeof found, "has %d numbers, but 8 x 8 x 8 x 16 links are %d", i, TILE_WORDS);
      refuse(path, found, "give the whole file");
    }
  fclose(file);
  return tile;
}

/* unit, random:SEED, transform:SEED, file:PATH */
static struct gauge gauge_named(const char* name) {
  struct gauge gauge = {GAUGE_UNIT, 0, name, 0};
  const char* rest = strchr(name, ':');
  char* end = 0;
  if (strcmp(name, "unit") == 0) return gauge;
  if (rest && strncmp(name, "file:", 5) == 0) {
    gauge.kind = GAUGE_FILE;
    gauge.tile = read_tile(rest + 1);
    return gauge;
  }
  if (rest) gauge.seed = strtoull(rest + 1, &end, 10);
  if (!end || end == rest + 1 || *end)
    refuse("--gauge", name, "say unit, random:SEED, transform:SEED, file:PATH");
  if (strncmp(name, "random:", 7) == 0)
    gauge.kind = GAUGE_RANDOM;
  else if (strncmp(name, "transform:", 10) == 0)
    gauge.kind = GAUGE_TRANSFORM;
  else
    refuse("--gauge", name, "say unit, random:SEED, transform:SEED, file:PATH");
  return gauge;
}

#endif
