/* Functions that use a template before it is fixed, chosen by the first letter of the argument. */
#include <xmp.h>

#pragma xmp nodes p(*)
#pragma xmp template t( :)
#pragma xmp distribute t(block) onto p
static double a[8];
#pragma xmp align a[i] with t(i)

static void loop(void) {
#pragma xmp loop(i) on t(i)
  for (int i = 0; i < 8; i++) (void)i;
}

static void use(void) {
  const int own = xmp_node_num() == 1 ? 0 : 7;
  a[own] = 1;
}

static void task(void) {
#pragma xmp task on t(1)
  ;
}

static void move(void) {
  double local[8];
#pragma xmp gmove
  local[:] = a[:];
  (void)local;
}

int main(int argc, char** argv) {
  (void)argc;
  switch (argv[1][0]) {
    case 'l':
      loop();
      break;
    case 'u':
      use();
      break;
    case 't':
      task();
      break;
    case 'm':
      move();
      break;
  }
#pragma xmp template_fix t(0 : 7)
  loop();
  use();
  task();
  move();
  return 0;
}
