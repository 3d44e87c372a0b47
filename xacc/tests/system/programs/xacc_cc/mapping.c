/* Distributions, alignments, loops, parameters, local arrays: each compared with a sequential program.
 * Sizes are not divisible by the number of nodes. */
#include "check.h"
#include "shared.h"

#define N 13
#define M 11

#pragma xmp nodes p(*)
#pragma xmp template block_t(0 : N - 1)
#pragma xmp template cyclic_t(0 : N - 1)
#pragma xmp template three_t(0 : N - 1)
#pragma xmp template shifted_t(5 : N + 7)
#pragma xmp template own_t(0 : N - 1)
#pragma xmp template later_t( :)
#pragma xmp distribute block_t(block) onto p
#pragma xmp distribute cyclic_t(cyclic) onto p
#pragma xmp distribute three_t(cyclic(3)) onto p
#pragma xmp distribute shifted_t(block) onto p
#pragma xmp distribute later_t(block) onto p

static int sizes[64];
#pragma xmp distribute own_t(gblock(sizes)) onto p
#pragma xmp template given_t(0 : N - 1)
#pragma xmp template both_t( :)
#pragma xmp distribute given_t(gblock(*)) onto p
#pragma xmp distribute both_t(gblock(*)) onto p

static long a[N][M], plain[M], cyclic_a[N][M], three_a[N], shifted_a[N], own_a[N], columns[M][N];
#pragma xmp align a[i][*] with block_t(i)
#pragma xmp align columns[*][j] with block_t(j)
#pragma xmp align cyclic_a[i][*] with cyclic_t(i)
#pragma xmp align three_a[i] with three_t(i)
#pragma xmp align shifted_a[i] with shifted_t(i + 6)
#pragma xmp align own_a[i] with own_t(i)
#pragma xmp shadow a[1 : 2][0]
static long later_a[N][M], *pointed;
#pragma xmp align later_a[i][*] with later_t(i)
#pragma xmp align pointed[i] with later_t(i)
static int visits[N][M];
#pragma xmp align visits[i][*] with block_t(i)
#pragma xmp shadow visits[1][0]
static long given_a[N], both_a[N];
#pragma xmp align given_a[i] with given_t(i)
#pragma xmp align both_a[i] with both_t(i)

/* Fixed by a function that other functions call. */
#pragma xmp template called_t( :)
#pragma xmp distribute called_t(block) onto p
static long called_a[N][M], *called_p;
#pragma xmp align called_a[i][*] with called_t(i)
#pragma xmp shadow called_a[1][0]
#pragma xmp align called_p[i] with called_t(i)
#pragma xmp nodes lines(1, *)
#pragma xmp template cyclic_rows(0 : N - 1, 0 : N - 1)
#pragma xmp distribute cyclic_rows(block, cyclic) onto lines
static long own_later[SHARED];
#pragma xmp align own_later[i] with shared_later(i)

/* Pointers whose rows are distributed, or have a shadow. */
static long (*across)[N], (*both_ways)[N];
#pragma xmp align across[*][j] with cyclic_t(j)
#pragma xmp align both_ways[*][j] with block_t(j)
#pragma xmp shadow both_ways[0][1]

/* Members of structs: of all structs with a tag, of one variable, and pointers. */
struct field {
  int count;
  long row[N];
  double plane[N][3];
};
#pragma xmp align field.row[i] with block_t(i)
#pragma xmp align field.plane[i][*] with cyclic_t(i)
#pragma xmp shadow field.row[1 : 2]
static struct field changed, other;
typedef struct {
  long *line, (*lines)[M], scale;
} pointers;
static pointers to;
#pragma xmp align to.line[i] with block_t(i)
#pragma xmp align to.lines[i][*] with block_t(i)

/* The sizes of gblock, for any number of nodes, before main and before templates are made. */
__attribute__((constructor(101))) static void choose_sizes(void) {
  const char* ranks = getenv("NODES");
  const int nodes = ranks ? atoi(ranks) : 1;
  int rest = N;
  for (int k = 0; k < nodes; k++) {
    sizes[k] = k == nodes - 1 ? rest : (k % 2 ? 0 : rest / 2);
    rest -= sizes[k];
  }
}

static long value(long i, long j) { return 100 * i + j; }

static long sum_of(const long v[N][M]) {
#pragma xmp align v[i][*] with block_t(i)
#pragma xmp shadow v[1 : 2][0]
#pragma xmp static_desc::v
  long sum = 0;
#pragma xmp loop on block_t(i) reduction(+ : sum)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) sum += v[i][j];
  return sum;
}

static void loops(void) {
  int i, j;
  long all = 0, count;
  for (i = 0; i < N; i++)
    for (j = 0; j < M; j++) all += value(i, j);

#pragma xmp loop(i) on block_t(i)
  for (i = N - 1; i >= 0; i--)
    for (j = 0; j < M; j++) a[i][j] = value(i, j);
  CHECK(sum_of(a) == all);

#pragma xmp loop(i) on cyclic_t(i)
  for (i = 0; i < N; i++)
    for (j = 0; j < M; j++) cyclic_a[i][j] = value(i, j);
  count = 7;
#pragma xmp loop(i) on cyclic_t(i) reduction(+ : count)
  for (i = 0; N > i; ++i)
    for (j = 0; j < M; j++) count += cyclic_a[i][j];
  CHECK(count == all + 7);

#pragma xmp loop on three_t(i)
  for (i = 0; i < N; i++) three_a[i] = i;
  count = 0;
#pragma xmp loop on three_t(i) reduction(+ : count)
  for (i = 1; i <= N - 2; i += 2) count += three_a[i];
  CHECK(count == 1 + 3 + 5 + 7 + 9 + 11);

#pragma xmp loop(i) on shifted_t(i + 6)
  for (i = 0; i < N; i++) shifted_a[i] = i * i;
  count = 0;
#pragma xmp loop(i) on shifted_t(i + 6) reduction(max : count)
  for (i = 0; i < N - 3; i++) count = shifted_a[i] > count ? shifted_a[i] : count;
  CHECK(count == 81);

  count = 0;
#pragma xmp loop on own_t(i)
  for (i = 0; i < N; i++) own_a[i] = i;
#pragma xmp loop on own_t(i) reduction(+ : count)
  for (i = 2; i != N; i++) count += own_a[i] == i;
  CHECK(count == N - 2);

#pragma xmp loop on block_t(j)
  for (j = 0; j < N; j++)
    for (i = 0; i < M; i++) columns[i][j] = value(i, j);
  count = 0;
#pragma xmp loop on block_t(j) reduction(+ : count)
  for (j = 0; j < N; j++)
    for (i = 0; i < M; i++) count += columns[i][j] == value(i, j);
  CHECK(count == N * M);

  count = 0; /* each node once, whatever its number */
#pragma xmp loop on p(k) reduction(+ : count)
  for (int k = 1; k <= xmp_num_nodes(); k++) count += k == xmp_node_num();
  CHECK(count == xmp_num_nodes());
}

static void locations(void) {
  long most = -1, least = 1000;
  int first = -1, last = -1;
#pragma xmp loop on block_t(i) reduction(firstmax : most / first /)
  for (int i = 0; i < N; i++)
    if (a[i][3] % 700 > most) most = a[i][3] % 700, first = i;
  CHECK(most == 603 && first == 6);
#pragma xmp loop on block_t(i) reduction(lastmin : least / last /)
  for (int i = 0; i < N; i++)
    if (a[i][3] % 400 <= least) least = a[i][3] % 400, last = i;
  CHECK(least == 3 && last == 12);
}

static void local_arrays(int turn) {
  int b[N];
#pragma xmp align b[i] with block_t(i)
  static int kept[N][M];
#pragma xmp align kept[i][*] with block_t(i)
  int count = 0;
#pragma xmp loop on block_t(i)
  for (int i = 0; i < N; i++) b[i] = i + turn, kept[i][0] += b[i];
#pragma xmp loop on block_t(i) reduction(+ : count)
  for (int i = 0; i < N; i++) count += kept[i][0] == (turn ? 2 * i + turn : i);
  CHECK(count == N);
}

static void fixed_later(int n) {
  long count = 0;
#pragma xmp template_fix(block) later_t(0 : n - 1)
  pointed = (long*)xmp_malloc(xmp_desc_of(pointed), n);
#pragma xmp loop on later_t(i)
  for (int i = 0; i < n; i++) later_a[i][2] = i, pointed[i] = 2 * i;
#pragma xmp loop on later_t(i) reduction(+ : count)
  for (int i = 0; i < n; i++) count += later_a[i][2] + pointed[i];
  CHECK(count == 3 * n * (n - 1) / 2);
}

static void fix_called(int n) {
  if (n > 0) {
#pragma xmp template_fix called_t(0 : n - 1)
  }
}
static void begin_called(int n) { fix_called(n), called_p = xmp_malloc(xmp_desc_of(called_p), n); }

static void fixed_by_a_call(int n) {
  long own[N], *pointer, sum = 0;
#pragma xmp align own[i] with called_t(i)
#pragma xmp align pointer[i] with called_t(i)
  if (n == N) begin_called(n);
  pointer = xmp_malloc(xmp_desc_of(pointer), n);
#pragma xmp loop on called_t(i)
  for (int i = 0; i < n; i++) called_a[i][M - 1] = own[i] = called_p[i] = pointer[i] = i;
#pragma xmp reflect(called_a)
#pragma xmp loop on called_t(i) reduction(+ : sum)
#pragma acc parallel loop copyin(called_a) reduction(+ : sum)
  for (int i = 1; i < n; i++) sum += called_a[i - 1][M - 1] - called_a[i][M - 1];
  CHECK(sum == 1 - n);
  for (int k = 0; k < 2; k++) {
    long whole[N];
#pragma xmp gmove
    whole[:] = called_a[:][M - 1];
    for (int i = 0; i < n; i++) CHECK(whole[i] == i);
  }
  free(pointer);
  free(called_p);
}

static void fixed_in_another_file(void) {
  long sum = 0;
  {
    fix_shared(SHARED);
#pragma xmp loop on shared_later(i)
    for (int i = 0; i < SHARED; i++) shared_grown[i][1] = own_later[i] = i;
  }
#pragma xmp loop on shared_later(i) reduction(+ : sum)
  for (int i = 0; i < SHARED; i++) sum += shared_grown[i][1] - own_later[i] + 1;
  CHECK(sum == SHARED);
}

/* gblock(*): template_fix gives the sizes, and the bounds unless they are known. */
static void sizes_later(int n) {
  long count = 0;
  int reversed[64];
  for (int k = 0; k < xmp_num_nodes(); k++) reversed[k] = sizes[xmp_num_nodes() - 1 - k];
#pragma xmp template_fix(gblock(sizes)) given_t
#pragma xmp template_fix(gblock(reversed)) both_t(0 : n - 1)
#pragma xmp loop on given_t(i)
  for (int i = 0; i < N; i++) given_a[i] = i;
#pragma xmp loop on both_t(i)
  for (int i = 0; i < n; i++) both_a[i] = 3 * i;
#pragma xmp loop on given_t(i) reduction(+ : count)
  for (int i = 0; i < N; i++) count += given_a[i];
#pragma xmp loop on both_t(i) reduction(+ : count)
  for (int i = 0; i < n; i++) count += both_a[i];
  CHECK(count == 2 * n * (n - 1));
  int own = 0;
#pragma xmp loop on both_t(i)
  for (int i = 0; i < n; i++) own++;
  CHECK(own == sizes[xmp_num_nodes() - xmp_node_num()]);
}

/* Arrays and templates declared in a header and defined in another file. */
static void of_header(void) {
  long count = 0;
#pragma xmp loop(i) on shared_t(i)
  for (int i = 0; i < SHARED; i++) shared_a[i][1] = i, own_of_header[i] = 1;
#pragma xmp reflect(shared_a)
#pragma xmp loop(i) on shared_t(i) reduction(+ : count)
  for (int i = 1; i < SHARED; i++) count += shared_a[i - 1][1] + own_of_header[i];
  CHECK(count == (SHARED - 1) * (SHARED - 2) / 2 + SHARED - 1);
  CHECK(sum_of_header() == SHARED * (SHARED - 1)); /* of two arrays */
}

/* Each element counts its visits. */
static void clear(void) {
#pragma xmp loop(i) on block_t(i)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) visits[i][j] = 0;
}

static void wider(void) {
  int first = N, last = -1, below = 0;
  long sum = 0;
#pragma xmp loop(i) on block_t(i)
  for (int i = 0; i < N; i++) first = i < first ? i : first, last = i;
  int low = N, high = -1, count = 0;
#pragma xmp loop(i) on block_t(i) expand(1 : 2)
  for (int i = 1; i < N; i++) low = i < low ? i : low, high = i, count++;
  if (last >= 1) {
    const int begin = first > 2 ? first - 1 : 1, end = last + 2 < N ? last + 2 : N - 1;
    CHECK(low == begin && high == end && count == end - begin + 1);
  }
  count = 0;
#pragma xmp loop(i) on block_t(i) expand(-1)
  for (int i = 0; i < N; i++) count++;
  CHECK(count == (last - first > 1 ? last - first - 1 : 0));
  count = 0;
#pragma xmp loop(i) on block_t(i) expand(/ unbound / 1)
  for (int i = 0; i <= N - 1; i++)
    if (count++, i < 0) below++;
  CHECK(count == (last < first ? 0 : last - first + 3) && below == (first == 0 && last >= 0));
  count = 0;
#pragma xmp loop(i) on block_t(i) margin(1)
  for (int i = 0; i < N; i++) {
    CHECK(i == first - 1 || i == last + 1);
    count++;
  }
  CHECK(count == (last < first ? 0 : (first > 0) + (last < N - 1)));
  clear();
#pragma xmp loop(i) on block_t(i) expand(-1)
#pragma acc parallel loop collapse(2)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) visits[i][j] += 1;
#pragma xmp loop(i) on block_t(i) margin(-1)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) visits[i][j] += 10;
#pragma xmp loop(i) on block_t(i) reduction(+ : sum)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) {
      CHECK(visits[i][j] == (i > first && i < last ? 1 : 10));
      sum++;
    }
  CHECK(sum == N * M);
  clear();
  sum = 0;
#pragma xmp reflect(visits) async(9)
#pragma xmp loop(i) on block_t(i) peel_and_wait(9, -1) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum)
  for (int i = 0; i < N; i++) {
    visits[i][3] += 1;
    sum += i;
  }
  CHECK(sum == N * (N - 1) / 2);
#pragma xmp loop(i) on block_t(i)
  for (int i = 0; i < N; i++) CHECK(visits[i][3] == 1);
}

static void sections(void) {
  long count = 0;
#pragma xmp array on block_t(2 : 5)
  a [2:4][1] = a [2:4][1] + plain[0] + 1;
#pragma xmp loop on block_t(i) reduction(+ : count)
  for (int i = 0; i < N; i++) count += a[i][1] - value(i, 1);
  CHECK(count == 4);
}

static long last_of(const long* v, long (*rows)[M]) {
#pragma xmp align v[i] with block_t(i)
#pragma xmp align rows[i][*] with block_t(i)
  long last = 0;
#pragma xmp loop(i) on block_t(i) reduction(max : last)
  for (int i = 0; i < N; i++) last = v[i] + rows[i][2] > last ? v[i] + rows[i][2] : last;
  long whole[N];
#pragma xmp gmove
  whole[:] = v[:];
  return last + whole[N - 1];
}

static long sum_of_rows(long v[M][N]) {
#pragma xmp align v[*][j] with block_t(j)
#pragma xmp shadow v[0][1]
  long sum = 0;
#pragma xmp loop(j) on block_t(j) reduction(+ : sum)
  for (int j = 0; j < N; j++) sum += v[M - 1][j];
  return sum;
}

static void rows_that_are_shared(int n) {
  long (*own)[N], sum = 0;
#pragma xmp align own[i][j] with cyclic_rows(i, j)
  across = xmp_malloc(xmp_desc_of(across), M, n);
  both_ways = xmp_malloc(xmp_desc_of(both_ways), M, n);
  own = (long (*)[N])xmp_malloc(xmp_desc_of(own), n, n);
  for (int i = 0; i < M; i++) {
#pragma xmp loop(j) on cyclic_t(j)
    for (int j = 0; j < n; j++) across[i][j] = value(i, j);
#pragma xmp loop(j) on block_t(j)
    for (int j = 0; j < n; j++) both_ways[i][j] = value(j, i);
  }
#pragma xmp loop(i, j) on cyclic_rows(i, j)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) own[i][j] = i + j;
#pragma xmp reflect(both_ways)
#pragma xmp loop(j) on block_t(j)
  for (int j = 1; j < n; j++) CHECK(both_ways[3][j - 1] == value(j - 1, 3));
#pragma xmp gmove
  both_ways [0:2][:] = across [4:2][:];
#pragma xmp gmove
  both_ways [2:2][:] = across [4:2][:];
#pragma xmp array on block_t( :)
  both_ways [2:2][:] = both_ways [2:2][:] + 1;
#pragma xmp loop(j) on block_t(j) reduction(+ : sum)
  for (int j = 0; j < n; j++) sum += both_ways[3][j] - both_ways[0][j];
  CHECK(sum == N * 101);
#pragma xmp loop(i, j) on cyclic_rows(i, j) reduction(+ : sum)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) sum += own[i][j];
  CHECK(sum == N * 101 + N * N * (N - 1));
  CHECK(sum_of_rows(both_ways) == N * (N - 1) * 50 + N * (M - 1));
  free(across);
  free(own);
  xmp_free(xmp_desc_of(both_ways));
}

static void fill(long v[N], int count) {
#pragma xmp align v[i] with block_t(i)
#pragma xmp shadow v[1 : 2]
#pragma xmp loop(i) on block_t(i)
  for (int i = 0; i < N; i++) v[i] = value(i, count);
}

static void of_structs(void) {
  struct {
    int count;
    long v[N];
  } own = {0, {0}}, *address = &own;
  long whole[N], sum = 0;
  changed.count = 3, other.count = 4;
  fill(changed.row, changed.count);
  fill(other.row, other.count);
#pragma xmp reflect(changed.row, other.row)
  to.line = xmp_malloc(xmp_desc_of(to.line), N);
  to.lines = xmp_malloc(xmp_desc_of(to.lines), N, M);
  to.scale = 2;
#pragma xmp loop(i) on block_t(i)
  for (int i = 0; i < N; i++) {
    CHECK(i == 0 || changed.row[i - 1] == value(i - 1, 3));
    CHECK(i > N - 3 || other.row[i + 2] == value(i + 2, 4));
    to.line[i] = to.scale * changed.row[i];
    to.lines[i][2] = other.row[i];
  }
#pragma xmp loop(i) on cyclic_t(i)
#pragma acc parallel loop copy(changed.plane) copyin(other.plane)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < 3; j++) changed.plane[i][j] = other.plane[i][j] + 10 * i + j;
#pragma xmp gmove
  whole[:] = to.lines [0:N][2];
  for (int i = 0; i < N; i++) CHECK(whole[i] == value(i, 4));
#pragma xmp array on block_t( :)
  other.row[:] = changed.row[:] + 1;
#pragma xmp gmove
  changed.row [0:4] = to.line [5:4];
#pragma xmp loop(i) on block_t(i) reduction(+ : sum)
#pragma acc parallel loop copyin(changed.row, other.row) reduction(+ : sum)
  for (int i = 0; i < N; i++) sum += changed.row[i] - other.row[i];
  for (int i = 0; i < 4; i++) sum -= 2 * value(5 + i, 3) - value(i, 3);
  CHECK(sum == -N);
#pragma xmp loop(i) on cyclic_t(i)
  for (int i = 0; i < N; i++) CHECK(changed.plane[i][1] == 10 * i + 1);
#pragma xmp loop(i) on shared_t(i)
  for (int i = 0; i < SHARED; i++) shared_s.v[i][1] = i;
  address->count++;
  CHECK(own.count == 1);
  CHECK(last_of(to.line, to.lines) == 4 * value(N - 1, 3) + value(N - 1, 4));
  xmp_free(xmp_desc_of(to.line));
  xmp_free(xmp_desc_of(to.lines));
}

static void of_a_local_struct(int call) {
  struct {
    int count;
    long v[N];
  } own;
  static struct {
    long row[N];
  } kept;
#pragma xmp align own.v[i] with block_t(i)
#pragma xmp align kept.row[i] with block_t(i)
  own.count = call;
#pragma xmp loop(i) on block_t(i)
  for (int i = 0; i < N; i++) {
    CHECK(kept.row[i] == call && own.v[i] == 0);
    kept.row[i]++, own.v[i] = own.count;
  }
}

void mapping(void) {
  rows_that_are_shared(N);
  of_structs();
  of_a_local_struct(0);
  of_a_local_struct(1);
  loops();
  locations();
  local_arrays(0);
  local_arrays(1);
  fixed_later(N);
  fixed_by_a_call(N);
  fixed_in_another_file();
  sizes_later(N);
  of_header();
  wider();
  sections();
}
