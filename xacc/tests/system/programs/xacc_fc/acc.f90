! Loops of acc in Fortran. Without its directives it is a sequential program, which prints the same numbers.
module kinds
  use, intrinsic :: iso_fortran_env, only: wp => real64, sp => real32
  implicit none
  integer, parameter :: i8 = selected_int_kind(18)
end module kinds

module fields
  use kinds
  implicit none
  integer, parameter :: nx = 12, ny = 23
!$xmp nodes p(*)
!$xmp template t(ny)
!$xmp distribute t(block) onto p
  real(wp) :: u(nx, ny), next(nx, ny)
!$xmp align u(*, j) with t(j)
!$xmp align next(*, j) with t(j)
!$xmp shadow u(0, 1)
contains
  subroutine smooth(steps, change)
    integer, intent(in) :: steps
    real(wp), intent(out) :: change
    integer :: i, j, step
    real(wp) :: middle
    do step = 1, steps
!$xmp reflect (u) acc
      change = 0
!$xmp loop (j) on t(j) reduction(max: change)
!$acc parallel loop collapse(2) reduction(max: change) private(middle) present(u, next)
      do j = 2, ny - 1
        do i = 2, nx - 1
          middle = u(i, j - 1) + u(i, j + 1) + u(i - 1, j) + u(i + 1, j)
          next(i, j) = 0.25_wp*middle
          change = max(change, abs(next(i, j) - u(i, j)))
        end do
      end do
!$acc end parallel loop
!$acc parallel present(u, next)
!$xmp loop (j) on t(j)
!$acc loop gang
      do j = 2, ny - 1
!$acc loop vector
        do i = 2, nx - 1
          u(i, j) = next(i, j)
        end do
      end do
!$acc end parallel
    end do
  end subroutine smooth

  function weighted() result(total)
    real(wp) :: total
    integer :: i, j
    total = 0
!$xmp loop (j) on t(j) reduction(+: total)
    do j = 1, ny
      do i = 1, nx
        total = total + u(i, j)*(i + 100*j)
      end do
    end do
  end function weighted
end module fields

program acc
  use fields
  implicit none
  real(wp) :: change, total
  integer :: i, j

!$xmp loop (j) on t(j)
  do j = 1, ny
    do i = 1, nx
      u(i, j) = sin(real(i*j, wp))
    end do
  end do
!$acc enter data copyin(u) create(next)
  call smooth(7, change)
!$acc update self(u)
  total = weighted()
!$xmp task on p(1)
  print '(a, 2es24.15)', 'smooth ', change, total
!$xmp end task
!$acc exit data delete(u, next)
  call shadows
  call operators(40)
  call integers(40)
  call clauses(31)
  call shapes(9)
  call jumps(50)
  call jacobi(16)
  call functions(20)
  call overlapped
  call procedures(20)

contains

  ! The inner part is computed while the halos are under way.
  subroutine overlapped
    real(wp) :: total
!$acc data copyin(u) copyout(next)
!$xmp reflect (u) async(4) acc
!$xmp loop (j) on t(j) peel_and_wait(4, -1)
!$acc parallel loop collapse(2)
    do j = 2, ny - 1
      do i = 2, nx - 1
        next(i, j) = u(i, j - 1) + 2*u(i, j + 1) + u(i - 1, j)
      end do
    end do
!$acc end data
    total = 0
!$xmp loop (j) on t(j) reduction(+: total)
    do j = 2, ny - 1
      do i = 2, nx - 1
        total = total + next(i, j)*(i + 100*j)
      end do
    end do
!$xmp task on p(1)
    print '(a, 2es24.15)', 'overlapped', total
!$xmp end task
  end subroutine overlapped

  ! Subroutines that change scalars and arrays, and functions of arrays.
  subroutine procedures(n)
    integer, intent(in) :: n
    real(wp) :: a(3, 2, n), weights(3), mean, difference, total, tmp(3)
    integer :: k
    weights = [1, 2, 3]
    total = 0
!$acc data create(a) copyin(weights)
!$acc parallel loop private(mean, difference, tmp)
    do i = 1, n
      do k = 1, 3
        difference = k
        call blend(weights(k), real(i, wp), mean, difference)
        a(k, 1, i) = mean
        a(k, 2, i) = difference
        tmp(k) = 10*k
      end do
      call scaled(3, a(1, 1, i), 2._wp)
      call blend(tmp(1), tmp(2), a(1, 1, i), tmp(3))
      a(2, 1, i) = a(2, 1, i) + tmp(3) + product3(2, tmp(2), weights)
    end do
!$acc parallel loop reduction(+: total)
    do i = 1, n
      total = total + product3(3, a(1, 2, i), weights) + a(1, 1, i) - a(2, 1, i)/7
    end do
!$acc end data
!$xmp task on p(1)
    print '(a, es24.15)', 'procedures', total
!$xmp end task
  end subroutine procedures

  pure subroutine blend(x, y, mean, difference)
    real(wp), intent(in) :: x, y
    real(wp), intent(out) :: mean
    real(wp), intent(inout) :: difference
    mean = 0.5_wp*(x + y)
    if (x > y) then
      difference = difference + x - y
      return
    end if
    difference = y - x
  end subroutine blend

  pure subroutine scaled(rows, values, by)
    integer, intent(in) :: rows
    real(wp), intent(inout) :: values(rows, 2)
    real(wp), intent(in) :: by
    integer :: r, c
    real(wp) :: own(2)
    own(1) = by
    own(2) = by + 1
    do c = 1, 2
      do r = 1, rows
        values(r, c) = values(r, c)*own(c)
      end do
    end do
  end subroutine scaled

  pure real(wp) function product3(n, x, y)
    integer, intent(in) :: n
    real(wp), intent(in) :: x(n), y(0:n - 1)
    integer :: k
    product3 = 0
    do k = 1, n
      product3 = product3 + x(k)*y(k - 1)
    end do
  end function product3

  ! Functions of the program, which call others.
  subroutine functions(n)
    integer, intent(in) :: n
    real(wp) :: a(n)
!$acc parallel loop
    do i = 1, n
      a(i) = exact(i, real(i, wp)) + half(exact(2, 1._wp)) + root(real(i))
    end do
!$xmp task on p(1)
    print '(a, 2es24.15)', 'functions', sum(a), a(n)
!$xmp end task
  end subroutine functions

  pure real(wp) function exact(i, x)
    integer, intent(in) :: i
    real(wp), intent(in) :: x
    real(wp), parameter :: third = 1._wp/3
    real(wp) :: y
    integer :: k
    exact = 0
    do k = 1, i
      y = half(x*k) + third
      if (k > 3) then
        exact = exact - y/nx
        cycle
      end if
      exact = exact + y
    end do
  end function exact

  elemental function half(x) result(of_x)
    real(wp), intent(in) :: x
    real(wp) :: of_x
    of_x = x/2
  end function half

  pure function root(x)
    real, intent(in) :: x
    real :: root
    root = -1
    if (x > 15) return
    root = sqrt(x)
  end function root

  subroutine shadows
    real(wp) :: total
    real(wp) :: whole(nx, ny)
!$acc enter data copyin(u)
!$xmp loop (j) on t(j)
!$acc parallel loop present(u)
    do j = 1, ny
      do i = 1, nx
        u(i, j) = i + 0.5_wp*j
      end do
    end do
!$xmp gmove acc
    whole(:, :) = u(:, :)
!$acc exit data copyout(u)
    total = weighted()
!$xmp task on p(1)
    print '(a, 2es24.15)', 'shadows ', total, sum(whole)
!$xmp end task
  end subroutine shadows

  ! Operators and intrinsic functions of reals, complex numbers and logicals.
  subroutine operators(n)
    integer, intent(in) :: n
    real(wp) :: d(n, 24)
    real(sp) :: f(n, 14)
    complex(wp) :: z(n, 6)
    logical :: b(n, 6)
    real(wp) :: x, y
    real(sp) :: s
    complex(wp) :: c
    integer :: m
    d = 0; f = 0; z = 0; b = .false.
!$acc parallel loop private(x, y, s, m, c) copy(d, f, z, b)
    do i = 1, n
      x = i*0.17_wp - 3.1d0
      y = 2.5d0 - x/3
      s = real(x)
      m = i - n/2
      d(i, 1) = sqrt(abs(x)) + exp(-x) - log(abs(x) + 1)
      d(i, 2) = sin(x)*cos(y) + tan(x/10) - log10(abs(y) + 2)
      d(i, 3) = asin(x/10) + acos(y/10) + atan(x) + atan2(x, y)
      d(i, 4) = sinh(x) + cosh(y) + tanh(x) + hypot(x, y)
      d(i, 5) = x**2 - x**3 + y**(-2) + abs(y)**x
      d(i, 6) = -x**2 + 2**3**2 + (-x)**4
      d(i, 7) = max(x, y, 0.3d0) - min(x, y)
      d(i, 8) = mod(x, 0.7d0) + modulo(x, 0.7d0)
      d(i, 9) = sign(x, y) + dim(x, y)
      d(i, 10) = aint(x) + anint(x) + real(floor(x), wp) + ceiling(y)
      d(i, 11) = merge(x, y, x < y)
      d(i, 12) = 1/3 + 7/2*x + (-7)/2 + 1.5
      d(i, 13) = huge(x)*tiny(x) + epsilon(1.0d0)
      d(i, 14) = erf(x) + erfc(y) + gamma(abs(y) + 1) + log_gamma(abs(x) + 2)
      d(i, 15) = dble(s) + dabs(x) + dsqrt(abs(y)) + dmax1(x, y)
      d(i, 16) = 4*atan(1.0_wp)*s
      d(i, 17) = m*x/n + nint(x) + int(y)
      d(i, 18) = .5d0 + 1.d-3 + 1e2 + 3._wp
      f(i, 1) = sqrt(abs(s)) + s**2 - s*2.0
      f(i, 2) = sin(s)*cos(s) + exp(-abs(s))
      f(i, 3) = max(s, 0.5) + min(s, 1.) + mod(s, 0.3) + sign(1.0, s)
      f(i, 4) = x
      f(i, 5) = m/3 + s/3
      f(i, 6) = abs(s)**0.5 + amax1(s, 2.)
      c = cmplx(x, y, wp)
      z(i, 1) = c*c - (1.5d0, -2d0)/c
      z(i, 2) = conjg(c) + 3
      z(i, 3) = exp(c)
      z(i, 4) = aimag(c) + real(c) + abs(c)
      z(i, 5) = cmplx(m)
      b(i, 1) = x < y .and. .not. (m > 3 .or. m == -2)
      b(i, 2) = (x .ge. y) .eqv. m /= 1
      b(i, 3) = b(i, 1) .neqv. b(i, 2)
      b(i, 4) = .true.
      if (x > 0) then
        d(i, 19) = 1
      else if (y > 2 .and. m < 0) then
        d(i, 19) = 2
      else
        d(i, 19) = 3
      end if
      if (b(i, 3)) d(i, 20) = x
    end do
!$xmp task on p(1)
    do j = 1, 24
      print '(a, i3, 2es24.15)', 'd', j, sum(d(:, j)), sum(d(:, j)*[(i, i=1, n)])
    end do
    do j = 1, 14
      print '(a, i3, 2es15.6)', 'f', j, sum(real(f(:, j), wp)), sum(real(f(:, j), wp)*[(i, i=1, n)])
    end do
    print '(a, 6(2es24.15))', 'z', sum(z, 1)
    print '(a, 6i4)', 'b', count(b, 1)
!$xmp end task
  end subroutine operators

  subroutine integers(n)
    integer, intent(in) :: n
    integer :: k(n, 20), m
    integer(i8) :: l(n, 4)
    integer, parameter :: bits = 5
    k = 0; l = 0
!$acc parallel loop copy(k, l)
    do i = 1, n
      m = 3*i - 60
      k(i, 1) = m/7 + mod(m, 7) + modulo(m, 7) + modulo(m, -7)
      k(i, 2) = abs(m)**2 + m**3 + (-1)**i + 2**(mod(i, 10))
      k(i, 3) = iand(m, 12) + ior(m, bits) + ieor(m, 9) + not(m)
      k(i, 4) = ishft(m, 2) + ishft(m, -3) + shiftl(m, 1) + shiftr(m, 4)
      k(i, 5) = max(m, i, 4) - min(m, i, 4) + sign(5, m) + dim(m, i)
      k(i, 6) = merge(1, 2, btest(m, 1))
      k(i, 7) = int(-3.7d0) + nint(2.5) + nint(-2.5d0) + floor(-0.5) + ceiling(-0.5d0)
      k(i, 8) = huge(m) - i
      l(i, 1) = int(m, i8)*1000000007_i8
      l(i, 2) = max(l(i, 1), 5_i8) - abs(l(i, 1))
      l(i, 3) = mod(l(i, 1), 97_i8) + int(i, 8)**4
    end do
!$xmp task on p(1)
    print '(20i13)', (sum(k(:, j)*[(i, i=1, n)]), j=1, 7)
    print '(4i24)', sum(l, 1), sum(int(k(:, 8), i8))
!$xmp end task
  end subroutine integers

  ! Clauses and constructs.
  subroutine clauses(n)
    integer, intent(in) :: n
    real(wp) :: a(n), b(n), total, most
    integer :: counts(0:3), hits, last, even, seen
    logical :: all_positive, some
    real(wp) :: tmp(3)
    a = [(i*0.25_wp, i=1, n)]
    b = 0
    counts = 0
    total = 5; most = -1; hits = 3; all_positive = .true.; some = .false.
!$acc data copyin(a(1:n)) copy(counts) create(b)
!$acc parallel loop reduction(+: total, hits) reduction(max: most) reduction(.and.: all_positive) &
!$acc   reduction(.or.: some)
    do i = 1, n
      total = total + a(i)
      hits = hits + 1
      most = max(most, a(i))
      all_positive = all_positive .and. a(i) > 0
      some = some .or. a(i) == 1.5_wp
      b(i) = 2*a(i)
    end do
!$acc parallel loop gang vector vector_length(64) num_gangs(4) private(tmp) if(n > 3) async(1)
    do i = 2, n - 1
      tmp(1) = b(i - 1)
      tmp(2) = b(i)
      tmp(3) = tmp(1) + tmp(2)
!$acc atomic update
      counts(mod(i, 4)) = counts(mod(i, 4)) + 1
    end do
!$acc wait(1)
    even = 0; seen = -1
!$acc parallel loop async(2) copyout(seen) default(none) present(a)
    do i = 1, n
      if (mod(i, 2) == 0) then
!$acc atomic
        even = even + 1
      end if
      if (i == 5) seen = nint(a(i)*4)
    end do
!$acc wait
!$acc kernels
!$acc loop independent
    do i = 1, n
      b(i) = b(i) + 1
    end do
    b(1) = 7
    do i = 2, n
      b(i) = b(i) + 0.5_wp*b(i - 1)
    end do
    last = n
!$acc end kernels
!$acc serial
    b(last) = -1
!$acc end serial
!$acc update self(b(2:n))
!$acc end data
    b(1) = 0
!$xmp task on p(1)
    print '(a, 4es24.15, 8i5, 2l2)', 'clauses', total, most, sum(b), sum(b*a), counts, hits, last, even, seen, &
      all_positive, some
!$xmp end task
    call reused(a, n, total)
!$xmp task on p(1)
    print '(a, 2es24.15)', 'reused', total, sum(a)
!$xmp end task
  end subroutine clauses

  ! Arrays without a size, and a sum of each row.
  subroutine reused(a, n, total)
    integer, intent(in) :: n
    real(wp), intent(inout) :: a(*)
    real(wp), intent(out) :: total
    integer :: start(5), e, row
    real(wp) :: line
    start = [1, 4, 4, 10, n]
    total = 0
!$acc data copy(a(1:n)) copyin(start)
!$acc parallel loop gang reduction(+: total) private(line)
    do row = 1, 4
      line = 0
!$acc loop vector reduction(+: line)
      do e = start(row), start(row + 1) - 1
        line = line + a(e)
      end do
      total = total + line*row
    end do
!$acc parallel loop
    do e = n, 1, -3
      a(e) = -a(e)
    end do
!$acc end data
  end subroutine reused

  ! Bounds, pointers and allocatable arrays.
  subroutine shapes(n)
    integer, intent(in) :: n
    real(wp), allocatable :: a(:, :, :)
    real(wp) :: b(-n:n, 0:2), lines(n, n)
    integer :: k
    allocate (a(0:n, -1:1, 3))
    a = 1
    b = 2
    lines = 0
!$acc parallel loop collapse(3) copy(a) copyin(b)
    do k = 1, 3
      do j = lbound(a, 2), ubound(a, 2)
        do i = 0, size(a, 1) - 1
          a(i, j, k) = a(i, j, k)*i + b(i - n, k - 1)*j + k
        end do
      end do
    end do
!$acc parallel loop
    do j = 1, n
      do i = 1, j
        lines(i, j) = real(i)/j
      end do
    end do
!$xmp task on p(1)
    print '(a, 3es24.15)', 'shapes', sum(a), sum(a(:, 0, 2)), sum(lines)
!$xmp end task
  end subroutine shapes

  subroutine jumps(n)
    integer, intent(in) :: n
    integer :: steps(n), k, at
    real(wp) :: x
!$acc parallel loop private(k, x)
    do 20 i = 1, n
      steps(i) = 0
      k = i
      do while (k > 1)
        if (mod(k, 2) == 0) then
          k = k/2
        else
          k = 3*k + 1
        end if
        steps(i) = steps(i) + 1
      end do
      outer: do at = 1, 9
        do k = 1, 9
          if (k == 5) cycle
          if (k > at) cycle outer
          if (k*at > i) exit outer
          steps(i) = steps(i) + 1
        end do
      end do outer
      x = 0
      do
        x = x + 0.5_wp
        if (x > i) exit
      end do
      if (i == 3) cycle
   20 steps(i) = steps(i) + nint(x)
!$xmp task on p(1)
    print '(a, 2i9)', 'jumps', sum(steps), sum(steps*[(i, i=1, n)])
!$xmp end task
  end subroutine jumps

  ! A procedure with a mapping of its own.
  subroutine jacobi(m)
    integer, intent(in) :: m
!$xmp template s(m, m)
!$xmp nodes q(*)
!$xmp distribute s(*, block) onto q
    real(sp) :: v(m, m)
!$xmp align v(i, j) with s(i, j)
    real(sp) :: total
!$acc data create(v)
!$xmp loop (i, j) on s(i, j)
!$acc parallel loop collapse(2)
    do j = 1, m
      do i = 1, m
        v(i, j) = i - j
      end do
    end do
    total = 0
!$xmp loop (i, j) on s(i, j) reduction(+: total)
!$acc parallel loop reduction(+: total)
    do j = 1, m
      do i = j, m
        total = total + v(i, j)
      end do
    end do
!$acc end data
!$xmp task on p(1)
    print '(a, es15.6)', 'jacobi', total
!$xmp end task
  end subroutine jacobi
end program acc
