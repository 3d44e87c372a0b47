/* A program of ABI 0: one rank that uses everything which the host can use. library/tests/system/test_abi.py
 * builds it against the headers beside it and runs it with the library of today. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peerway/handles.h"
#include "peerway/peerway.h"

#define SECOND 1000000000ULL
#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      printf("line %d: %s: %s\n", __LINE__, #condition, pw_error_message()); \
      exit(1);                                                               \
    }                                                                        \
  } while (0)
#define OK(call) CHECK((call) == PW_OK)

static const pw_device host = {PW_HOST, 0};
static pw_team* team;
static pw_context* context;
static pw_region *region, *mine;
static pw_remote *remote, *far_signal;
static pw_signal* signal_;
static unsigned char* bytes;

static void call(void* user) { ++*(int*)user; }
static void take(void* user, int rank, const void* part, size_t size) {
  if (rank == 0 && size == sizeof(int)) *(int*)user = *(const int*)part;
}
static int no(void* user) { return user != NULL; }

static void open_all(void) {
  unsigned char key[PW_KEY_MAX];
  static unsigned char memory[4096];
  size_t length = 0;
  OK(pw_team_from_launcher(&team));
  CHECK(pw_team_rank(team) == 0 && pw_team_size(team) == 1);
  OK(pw_team_free(team));
  OK(pw_team_create(0, 1, NULL, NULL, &team));
  int number = 7, all = 0, lost = 1;
  OK(pw_team_all_gather(team, &all, &number, sizeof number, SECOND));
  CHECK(all == 7);
  number = 8;
  OK(pw_team_all_gather_parts(team, &number, sizeof number, take, &all, SECOND));
  CHECK(all == 8);
  OK(pw_team_barrier(team, SECOND));
  OK(pw_team_lost(team, 0, &lost));
  CHECK(lost == 0);
  OK(pw_context_create(team, &context));
  OK(pw_context_use(context, NULL));
  OK(pw_context_set_wait_policy(context, PW_WAIT_BUSY_POLL));
  CHECK(pw_context_wait_policy(context) == PW_WAIT_BUSY_POLL);
  pw_set_interrupt_check(no, NULL);
  OK(pw_region_allocate(context, host, 4096, &region));
  OK(pw_region_register(context, memory, sizeof memory, &mine));
  CHECK(pw_region_bytes(region) == 4096 && pw_region_device(mine).kind == PW_HOST);
  CHECK(pw_region_access(region) == PW_READ_WRITE);
  static const unsigned char constant[64] = {1};
  pw_region* source;
  OK(pw_region_register_read_only(context, constant, sizeof constant, &source));
  CHECK(pw_region_access(source) == PW_READ_ONLY);
  OK(pw_region_free(source));
  bytes = pw_region_address(region);
  OK(pw_region_key(region, key, sizeof key, &length));
  OK(pw_remote_import(context, key, length, &remote));
  CHECK(pw_remote_access(remote) == PW_READ_WRITE);
  CHECK(pw_remote_rank(remote) == 0 && pw_remote_bytes(remote) == 4096);
  OK(pw_signal_create(context, 0, host, &signal_));
  OK(pw_signal_key(signal_, key, sizeof key, &length));
  OK(pw_remote_import(context, key, length, &far_signal));
}

static void move(void) {
  const pw_notification notification = {.size = sizeof notification, .signal = far_signal, .by = 2};
  const pw_block rows = {
      .size = sizeof rows, .offset = 64, .block_bytes = 8, .dims = 2, .count = {2, 3}, .stride = {64, 16}};
  const pw_block dense = {.size = sizeof dense, .offset = 1024, .block_bytes = 48};
  uint64_t value = 0;
  for (int i = 0; i < 48; ++i) bytes[1024 + i] = (unsigned char)i;
  OK(pw_put_block(context, remote, &rows, region, &dense, &notification));
  OK(pw_flush(context, PW_ANY_RANK, SECOND));
  CHECK(bytes[64 + 16] == 8 && bytes[64 + 64 + 32 + 7] == 47);
  OK(pw_put(context, remote, 0, region, 1024, 8, NULL));
  OK(pw_get(context, mine, 8, remote, 1024, 8));
  OK(pw_get_block(context, mine, &dense, remote, &rows));
  OK(pw_notify(context, &notification));
  OK(pw_flush(context, 0, SECOND));
  CHECK(((unsigned char*)pw_region_address(mine))[1024 + 47] == 47);
  OK(pw_signal_wait(signal_, 4, SECOND));
  OK(pw_signal_value(signal_, &value));
  CHECK(value == 4);

  pw_request* requests[4];
  size_t index = 0;
  int complete = 0;
  OK(pw_start_put(context, remote, &rows, region, &dense, &notification, &requests[0]));
  OK(pw_start_get(context, mine, &dense, remote, &rows, &requests[1]));
  OK(pw_start_notify(context, &notification, &requests[2]));
  OK(pw_start_flush(context, PW_ANY_RANK, &requests[3]));
  OK(pw_request_wait_any(requests, 4, SECOND, &index));
  OK(pw_request_wait_all(requests, 4, SECOND));
  OK(pw_request_test(requests[3], &complete));
  CHECK(index < 4 && complete == 1);
  OK(pw_request_wait(requests[0], 0));
  for (int i = 0; i < 4; ++i) OK(pw_request_free(requests[i]));
}

static void plans(void) {
  const pw_notification notification = {.size = sizeof notification, .signal = far_signal, .by = 1};
  const pw_block first = {.size = sizeof first, .block_bytes = 64};
  const pw_block second = {.size = sizeof second, .offset = 64, .block_bytes = 64};
  pw_plan_builder* builder;
  pw_plan* plan;
  pw_request* request;
  OK(pw_plan_builder_create(context, host, &builder));
  OK(pw_plan_builder_put(builder, remote, &first, region, &second, NULL));
  OK(pw_plan_builder_get(builder, mine, &first, remote, &second));
  OK(pw_plan_builder_send(builder, 0, 3, region, &second));
  OK(pw_plan_builder_receive(builder, 0, 3, mine, &second));
  OK(pw_plan_builder_notify(builder, &notification));
  OK(pw_plan_builder_after(builder, signal_, 1, 1));
  OK(pw_plan_builder_wait(builder, signal_, 1));
  CHECK(pw_plan_builder_prepare(builder, (pw_prepare_mode)2, &plan) == PW_INVALID_ARGUMENT);
  OK(pw_plan_builder_prepare(builder, PW_PREPARE_COLLECTIVE, &plan));
  OK(pw_plan_builder_free(builder));
  OK(pw_plan_set_timeout(plan, 20 * SECOND));
  const char* text = NULL;
  OK(pw_plan_describe(plan, &text));
  CHECK(text != NULL && text[0] != '\0');
  OK(pw_plan_start(plan, &request));
  OK(pw_request_wait(request, 20 * SECOND));
  OK(pw_request_free(request));
  OK(pw_plan_start(plan, NULL));
  OK(pw_plan_finish(plan, 20 * SECOND));

  pw_plan* among;
  const int ranks[] = {0};
  OK(pw_plan_builder_create(context, host, &builder));
  OK(pw_plan_builder_send(builder, 0, 5, region, &second));
  OK(pw_plan_builder_receive(builder, 0, 5, mine, &second));
  OK(pw_plan_builder_prepare_among(builder, ranks, 1, &among));
  OK(pw_plan_builder_free(builder));
  OK(pw_plan_start(among, NULL));
  OK(pw_plan_finish(among, 20 * SECOND));
  OK(pw_plan_free(among));

  pw_stream stream;
  int called = 0;
  OK(pw_stream_create(context, host, &stream));
  OK(pw_plan_start_on(plan, stream));
  OK(pw_plan_finish_on(plan, stream));
  OK(pw_plan_run_on(plan, stream));
  OK(pw_stream_call(context, stream, call, &called));
  OK(pw_stream_wait(context, stream, 20 * SECOND));
  CHECK(called == 1);
  OK(pw_stream_free(context, stream));
  OK(pw_plan_status(plan));
  pw_lane_handle lane;
  CHECK(pw_plan_get_lane(plan, PW_SEND, 0, 3, &lane) == PW_UNSUPPORTED);
  CHECK(pw_plan_get_lane(plan, (pw_direction)2, 0, 3, &lane) == PW_INVALID_ARGUMENT);
  OK(pw_plan_free(plan));

  uint64_t from = 0, count = 0;
  OK(pw_grid_block(10, 4, 3, &from, &count));
  CHECK(from == 9 && count == 1);
  const pw_grid grid = {.size = sizeof grid, .dims = 1, .extent = {1}};
  const pw_array array = {
      .size = sizeof array,
      .region = region,
      .element_bytes = 8,
      .dims = 1,
      .dim = {{.extent = 4, .grid_dim = 0, .periodic = 1, .shadow = {1, 1}, .width = {1, 1}}}};
  CHECK(pw_halo_create(context, &array, 1, &grid, (pw_halo_parts)2, &plan) == PW_INVALID_ARGUMENT);
  OK(pw_halo_create(context, &array, 1, &grid, PW_HALO_FACES, &plan));
  double* cells = (double*)bytes;
  for (int i = 0; i < 6; ++i) cells[i] = i;
  OK(pw_plan_start(plan, NULL));
  OK(pw_plan_finish(plan, 20 * SECOND));
  CHECK(cells[0] == 4 && cells[5] == 1);
  OK(pw_plan_free(plan));
}

static void collectives(void) {
  pw_collective sum = {.size = sizeof sum,
                       .kind = PW_ALL_REDUCE,
                       .element = PW_FLOAT64,
                       .reduction = PW_SUM,
                       .order = PW_ORDER_ANY,
                       .to = region,
                       .from = region,
                       .count = 4};
  double* elements = (double*)bytes;
  pw_plan* plan;
  pw_all_reduce_handle handle;
  for (int i = 0; i < 4; ++i) elements[i] = i;
  OK(pw_collective_create(context, &sum, &plan));
  OK(pw_plan_start(plan, NULL));
  OK(pw_plan_finish(plan, 20 * SECOND));
  CHECK(elements[3] == 3);
  CHECK(pw_plan_get_all_reduce_handle(plan, &handle) == PW_UNSUPPORTED);
  OK(pw_plan_free(plan));
  sum.order = (pw_order)2;
  CHECK(pw_collective_create(context, &sum, &plan) == PW_INVALID_ARGUMENT);
}

static void kernels(void) { /* on the host, which has none */
  pw_remote_handle remote_handle;
  pw_notify_handle notify_handle;
  pw_signal_handle signal_handle;
  pw_plan_handle plan_handle;
  pw_fifo_handle fifo_handle;
  pw_fifo* fifo;
  CHECK(pw_remote_get_handle(remote, host, &remote_handle) == PW_UNSUPPORTED);
  CHECK(pw_remote_get_notify_handle(far_signal, host, &notify_handle) == PW_UNSUPPORTED);
  OK(pw_remote_release_notify_handle(far_signal));
  CHECK(pw_signal_get_handle(signal_, host, SECOND, &signal_handle) == PW_UNSUPPORTED);
  OK(pw_signal_status(signal_));
  CHECK(pw_plan_get_handle(NULL, &plan_handle) == PW_INVALID_ARGUMENT);
  OK(pw_fifo_create(context, &remote, 1, &region, 1, host, 4, &fifo));
  OK(pw_fifo_get_handle(fifo, &fifo_handle));
  CHECK(fifo_handle.version == PW_HANDLE_VERSION && fifo_handle.count == 4);
  OK(pw_fifo_status(fifo));
  OK(pw_fifo_free(fifo));
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  CHECK(pw_abi_version() == PW_ABI_VERSION);
  CHECK(strcmp(pw_status_name(PW_STALE_KEY), "stale_key") == 0);
  open_all();
  move();
  plans();
  collectives();
  kernels();
  OK(pw_signal_free(signal_));
  OK(pw_remote_free(far_signal));
  OK(pw_remote_free(remote));
  OK(pw_region_free(mine));
  OK(pw_region_free(region));
  OK(pw_context_close(context));
  OK(pw_context_free(context));
  OK(pw_team_free(team));
  printf("ABI %d runs with %s\n", PW_ABI_VERSION, pw_version());
  return 0;
}
