/* Two processes on UCX, with UCP_ERR_HANDLING_MODE_PEER; one is killed. The other prints as JSON with
 * which error UCX's handler of the endpoint was called, how its request under way ended, and after how
 * long. Usage: ucp_death talking|silent [NETWORK NAMESPACE OF THE ONE] [OF THE OTHER]. talking: it sends
 * small and large messages all the time; silent: it has sent one message, and then waits */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

enum { kSmall = 8, kLarge = 1 << 20, kTag = 5, kBefore = 100 };

static ucs_status_t told = UCS_OK; /* the error that the handler was called with */

static void need(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "ucp_death: %s\n", what);
  exit(2);
}

static void enter(const char* space) {
  char path[256];
  snprintf(path, sizeof path, "/run/netns/%s", space);
  const int file = open(path, O_RDONLY);
  need(file >= 0 && setns(file, CLONE_NEWNET) == 0, "no such network namespace");
  close(file);
}

static void on_error(void* arg, ucp_ep_h endpoint, ucs_status_t status) {
  (void)arg, (void)endpoint;
  told = status;
}

static ucp_worker_h open_worker(void) {
  ucp_config_t* config;
  ucp_context_h context;
  ucp_worker_h worker;
  ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
  ucp_worker_params_t worker_params = {0};
  need(ucp_config_read(NULL, NULL, &config) == UCS_OK, "ucp_config_read");
  need(ucp_init(&params, config, &context) == UCS_OK, "ucp_init");
  ucp_config_release(config);
  need(ucp_worker_create(context, &worker_params, &worker) == UCS_OK, "ucp_worker_create");
  return worker;
}

/* Returns the peer's endpoint, once both have exchanged their addresses. */
static ucp_ep_h meet(ucp_worker_h worker, int channel) {
  ucp_address_t* own;
  size_t own_bytes, bytes;
  need(ucp_worker_get_address(worker, &own, &own_bytes) == UCS_OK, "ucp_worker_get_address");
  need(write(channel, &own_bytes, sizeof own_bytes) == (ssize_t)sizeof own_bytes, "write");
  need(write(channel, own, own_bytes) == (ssize_t)own_bytes, "write");
  need(read(channel, &bytes, sizeof bytes) == (ssize_t)sizeof bytes, "read");
  ucp_address_t* address = malloc(bytes);
  need(recv(channel, address, bytes, MSG_WAITALL) == (ssize_t)bytes, "recv");
  ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                          UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                          UCP_EP_PARAM_FIELD_ERR_HANDLER,
                            .address = address,
                            .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                            .err_handler.cb = on_error};
  ucp_ep_h endpoint;
  need(ucp_ep_create(worker, &params, &endpoint) == UCS_OK, "ucp_ep_create");
  return endpoint;
}

static ucs_status_t finish(ucp_worker_h worker, ucs_status_ptr_t request) {
  if (!UCS_PTR_IS_PTR(request)) return UCS_PTR_STATUS(request);
  while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker);
  const ucs_status_t status = ucp_request_check_status(request);
  ucp_request_free(request);
  return status;
}

static ucs_status_t send_one(ucp_worker_h worker, ucp_ep_h endpoint, const void* data, size_t bytes) {
  const ucp_request_param_t param = {0};
  return finish(worker, ucp_tag_send_nbx(endpoint, data, bytes, kTag, &param));
}

/* Receives until it is killed, and tells the other process once that it has begun. */
static void receive(int channel) {
  static char data[kLarge];
  ucp_worker_h worker = open_worker();
  meet(worker, channel);
  for (int i = 0;; ++i) {
    const ucp_request_param_t param = {0};
    finish(worker, ucp_tag_recv_nbx(worker, data, sizeof data, kTag, ~0ull, &param));
    if (i == 0) need(write(channel, "1", 1) == 1, "write");
  }
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char** argv) {
  need(argc == 2 || argc == 4, "usage: ucp_death talking|silent [NAMESPACE NAMESPACE]");
  const int talking = strcmp(argv[1], "talking") == 0;
  int pair[2];
  need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
  setenv("PEERWAY_RANK", "0", 1);
  const pid_t victim = fork();
  if (argc == 4) enter(argv[victim == 0 ? 3 : 2]);
  if (victim == 0) setenv("PEERWAY_RANK", "1", 1);
  if (victim == 0) receive(pair[1]);
  static char data[kLarge];
  char byte;
  ucs_status_t status = UCS_OK;
  ucp_worker_h worker = open_worker();
  ucp_ep_h endpoint = meet(worker, pair[0]);
  need(send_one(worker, endpoint, data, kSmall) == UCS_OK, "the first message");
  need(read(pair[0], &byte, 1) == 1, "read");
  for (int i = 0; talking && i < kBefore; ++i)
    need(send_one(worker, endpoint, data, i % 2 ? kLarge : kSmall) == UCS_OK, "a message before");
  kill(victim, SIGKILL);
  const double start = seconds();
  for (int i = 0; told == UCS_OK; ++i) {
    if (talking && status == UCS_OK) status = send_one(worker, endpoint, data, i % 2 ? kLarge : kSmall);
    ucp_worker_progress(worker);
  }
  const double took = seconds() - start;
  waitpid(victim, NULL, 0);
  printf("{\"told\":\"%s\",\"request\":\"%s\",\"after_s\":%.3f}\n", ucs_status_string(told),
         ucs_status_string(status), took);
  fflush(stdout);
  _exit(0);
}
