/* One error, chosen by the first argument. The other ranks must not wait forever for the rank that finds
 * it. Line numbers are those of an imaginary prog.c. */
#include <unistd.h>

#include "check.h"

int failures, checks;
#define AT(line) (&(pwx_where){"prog.c", line})

static pwx_nodes p;
static pwx_template t, open;
static pwx_array a, v;
static pwx_halo halo;

static void make(pwx_array* of, long count, long lo, long hi) {
  pwx_array_init(of, "a", sizeof(double), 1, &count, &t, (int[]){0}, (long[]){0}, &lo, &hi, AT(12));
}

int main(int argc, char** argv) {
  const char* mistake = argv[1];
  pwx_array* const list[] = {&a};
  pwx_gmove_one_sided();
  pwx_begin(&argc, &argv);
#define CASE(name) if (strcmp(mistake, name) == 0)
  CASE("nodes") pwx_nodes_init(&p, "p", 1, (int[]){7}, NULL, 0, AT(3));
  CASE("none") pwx_nodes_init(&p, "p", 1, (int[]){0}, NULL, 0, AT(3));
  pwx_nodes_init(&p, "p", 1, (int[]){PWX_OPEN}, NULL, 0, AT(3));
  pwx_template_init(&t, "t", 1, (long[]){0}, (long[]){9}, AT(4));
  pwx_distribute(&t, &p, (pwx_kind[]){PWX_BLOCK}, NULL, NULL, AT(5));
  CASE("unfixed") {
    pwx_template_open(&open, "open", 1, AT(4));
    pwx_distribute(&open, &p, (pwx_kind[]){PWX_BLOCK}, NULL, NULL, AT(5));
    pwx_array_init(&a, "a", 8, 1, (long[]){10}, &open, (int[]){0}, (long[]){0}, (long[]){0}, (long[]){0},
                   AT(6));
  }
  CASE("alignment") make(&a, 11, 0, 0);
  CASE("ended") if (rank() == 1) return 0; /* without having allocated the array that node 1 reads */
  make(&a, 10, 1, 1);
  CASE("width") pwx_reflect(&halo, 1, list, (pwx_width[]){{1, 2, 0}}, 0, AT(20));
  CASE("shadow") {
    make(&v, 10, 0, 0);
    pwx_reflect(&halo, 1, (pwx_array*[]){&v}, (pwx_width[]){{0, 1, 0}}, 0, AT(21));
  }
  CASE("unrelated")
  pwx_bind(&v, &halo, "v", 8, 1, (long[]){10}, &t, (int[]){0}, (long[]){0}, (long[]){1}, (long[]){1}, AT(22));
  CASE("differs")
  pwx_bind(&v, a.memory, "v", 8, 1, (long[]){10}, &t, (int[]){0}, (long[]){0}, (long[]){2}, (long[]){1},
           AT(23));
  CASE("expect") pwx_array_expect(&a, 0, 99, AT(24));
  CASE("node") {
    const pwx_ref far = {.nodes = &p, .sub = {{PWX_RANGE, 5, 5, 1}}};
    pwx_task_begin(&far, 0, AT(25));
  }
  CASE("section") {
    const pwx_section target = {.array = &a, .ndims = 1, .dim = {{0, 10, 1, 0}}};
    const pwx_section source = {.array = &a, .ndims = 1, .dim = {{1, 10, 1, 0}}};
    pwx_gmove(PWX_COLLECTIVE, &target, &source, AT(26));
  }
  const pwx_section last = {.array = &a, .ndims = 1, .dim = {{9, 1, 1, 1}}};
  double received = 0;
  const pwx_section local = {.base = &received, .element_bytes = sizeof received};
  const pwx_ref first = {.nodes = &p, .sub = {{PWX_RANGE, 1, 1, 1}}};
  CASE("outside") { /* of a task that the owner of the last element does not execute */
    pwx_task task = pwx_task_begin(&first, 0, AT(32));
    if (task.inside) pwx_gmove(PWX_COLLECTIVE, &local, &last, AT(33));
    pwx_task_end(&task);
    pwx_barrier(NULL, AT(34));
  }
  CASE("freed") { /* only at node 2, after node 1 has read there */
    pwx_barrier(NULL, AT(35));
    for (int time = 0; time < 2; ++time) {
      pwx_task task = pwx_task_begin(&first, 0, AT(35));
      if (task.inside) pwx_gmove(PWX_IN, &local, &last, AT(35 + time));
      pwx_task_end(&task);
      pwx_barrier(NULL, AT(37));
      if (rank() == 1) pwx_array_free(&a);
      pwx_barrier(NULL, AT(37));
    }
  }
  CASE("ended") pwx_gmove(PWX_IN, &local, &last, AT(38));
  CASE("operator") {
    double operand = 1;
    pwx_reduce(NULL, PWX_BIT_OR, PWX_DOUBLE, &operand, 1, AT(27));
  }
  CASE("twice") {
    pwx_reflect_async(&halo, 1, list, NULL, 0, 1, AT(28));
    pwx_reflect_async(&halo, 1, list, NULL, 0, 2, AT(29));
  }
  /* an error that only one rank finds, while the others wait for it */
  CASE("alone") {
    if (rank() == size() - 1) pwx_error(AT(30), "index %d is not in the on-clause", 4);
    pwx_barrier(NULL, AT(31));
  }
  CASE("exit") {
    if (rank() == 0) _exit(3);
    pwx_barrier(NULL, AT(32));
  }
  return 0;
}
