/* Heat spreads over a ring of 16 x 16 cells, whose rows are distributed over all ranks: each step refreshes
 * the halo, and meanwhile computes the cells that do not need it.
 *
 *   cc halo.c $(pkg-config --cflags --libs peerway) -o halo && peerway run -n 2 -- ./halo */
#include <peerway/peerway.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ull
#define CELLS 16
#define PITCH (CELLS + 2)
#define STEPS 50

static void check(pw_status status) {
  if (status == PW_OK) return;
  fprintf(stderr, "%s\n", pw_error_message());
  exit(1);
}

/* Row `row` one step later. */
static void spread(double (*u)[PITCH], double (*next)[PITCH], uint64_t row) {
  for (int i = 1; i <= CELLS; ++i)
    next[row][i] =
        u[row][i] + 0.1 * (u[row - 1][i] + u[row + 1][i] + u[row][i - 1] + u[row][i + 1] - 4 * u[row][i]);
}

int main(void) {
  pw_team* team;
  pw_context* context;
  check(pw_team_from_launcher(&team));
  check(pw_context_create(team, &context));
  const int rank = pw_team_rank(team), size = pw_team_size(team);

  uint64_t first, rows; /* this rank's part: of many ranks the last have fewer rows, or none */
  check(pw_grid_block(CELLS, (uint32_t)size, (uint32_t)rank, &first, &rows));
  /* One layer of shadow on all sides. */
  const size_t bytes = (rows + 2) * PITCH * sizeof(double);
  pw_region* region;
  check(pw_region_allocate(context, (pw_device){.kind = PW_HOST}, bytes, &region));
  double (*u)[PITCH] = pw_region_address(region), (*next)[PITCH] = calloc(1, bytes);
  if (first <= CELLS / 2 && CELLS / 2 < first + rows) u[CELLS / 2 - first + 1][CELLS / 2 + 1] = 100;

  const pw_grid grid = {.size = sizeof grid, .dims = 1, .extent = {(uint32_t)size}};
  const pw_array array = {
      .size = sizeof array,
      .region = region,
      .element_bytes = sizeof(double),
      .dims = 2,
      .dim = {{.extent = CELLS, .grid_dim = 0, .periodic = 1, .shadow = {1, 1}, .width = {1, 1}},
              {.extent = CELLS, .grid_dim = -1, .periodic = 1, .shadow = {1, 1}, .width = {1, 1}}},
  };
  pw_plan* halo;
  check(pw_halo_create(context, &array, 1, &grid, PW_HALO_FACES, &halo));
  for (int step = 0; step < STEPS; ++step) {
    check(pw_plan_start(halo, NULL));
    for (uint64_t row = 2; row < rows; ++row) spread(u, next, row); /* needs no halo */
    check(pw_plan_finish(halo, 10 * SECOND));
    if (rows == 0) continue;
    spread(u, next, 1);
    spread(u, next, rows);
    memcpy(u[1], next[1], rows * sizeof u[1]);
  }

  double heat = 0;
  for (uint64_t row = 1; row <= rows; ++row)
    for (int i = 1; i <= CELLS; ++i) heat += u[row][i];
  printf("rank %d has %.6f of the heat\n", rank, heat);

  check(pw_team_barrier(team, 10 * SECOND)); /* nobody closes what a neighbour still uses */
  check(pw_plan_free(halo));
  check(pw_region_free(region));
  check(pw_context_free(context));
  check(pw_team_free(team));
  free(next);
  return 0;
}
