# SPDX-License-Identifier: Apache-2.0
"""Taichi: kernels written in Python, which its own LLVM compiles to PTX; sparse structures, derivatives, sorting."""

import steps

steps.begin()

import numpy
import taichi as ti

ti.init(arch=ti.cuda, offline_cache=False, log_level=ti.WARN)
steps.framework("Taichi", ti.__version__ if isinstance(ti.__version__, str) else ".".join(map(str, ti.__version__)))

PARTICLES, GRID = 2000, 64


@ti.data_oriented
class Work:
    """Fields belong to the run of Taichi in which they were made, so each side makes its own."""

    def __init__(self):
        self.image = ti.field(float, shape=(640, 320))
        self.x, self.v = ti.Vector.field(2, float, PARTICLES), ti.Vector.field(2, float, PARTICLES)
        self.c, self.j = ti.Matrix.field(2, 2, float, PARTICLES), ti.field(float, PARTICLES)
        self.grid_v, self.grid_m = ti.Vector.field(2, float, (GRID, GRID)), ti.field(float, (GRID, GRID))
        self.sparse = ti.field(ti.i32)
        ti.root.pointer(ti.ij, 8).dense(ti.ij, 8).place(self.sparse)
        self.list = ti.field(ti.i32)
        self.node = ti.root.dynamic(ti.i, 1024, chunk_size=32)
        self.node.place(self.list)
        self.angle = ti.field(float, 1000, needs_grad=True)
        self.loss = ti.field(float, (), needs_grad=True)
        self.numbers = ti.field(ti.i32, 4096)

    @ti.kernel
    def julia(self, t: float):
        for i, j in self.image:
            c, z = ti.Vector([-0.8, ti.cos(t) * 0.2]), ti.Vector([i / 320 - 1, j / 320 - 0.5]) * 2
            count = 0
            while z.norm() < 20 and count < 50:
                z = ti.Vector([z[0] ** 2 - z[1] ** 2, z[1] * z[0] * 2]) + c
                count += 1
            self.image[i, j] = 1 - count * 0.02

    @ti.kernel
    def place(self):
        for i in range(PARTICLES):
            self.x[i] = [(i % 50) / 50 * 0.4 + 0.2, (i // 50) / 40 * 0.4 + 0.2]
            self.v[i] = [0, -1]
            self.c[i] = ti.Matrix.zero(float, 2, 2)
            self.j[i] = 1

    @ti.kernel
    def step(self):
        dx, dt = ti.static(1 / GRID), ti.static(2e-4)
        for i, j in self.grid_m:
            self.grid_v[i, j] = [0, 0]
            self.grid_m[i, j] = 0
        for p in self.x:
            at = self.x[p] / dx
            base = int(at - 0.5)
            fx = at - base
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            stress = -dt * 4 * 400 * 0.25 * (self.j[p] - 1)
            affine = ti.Matrix([[stress, 0], [0, stress]]) + (dx * 0.5) ** 2 * self.c[p]
            for i, j in ti.static(ti.ndrange(3, 3)):
                offset = ti.Vector([i, j])
                weight = w[i].x * w[j].y
                self.grid_v[base + offset] += weight * ((dx * 0.5) ** 2 * self.v[p] + affine @ ((offset - fx) * dx))
                self.grid_m[base + offset] += weight * (dx * 0.5) ** 2
        for i, j in self.grid_m:
            if self.grid_m[i, j] > 0:
                self.grid_v[i, j] /= self.grid_m[i, j]
            self.grid_v[i, j].y -= dt * 9.8
            if j < 3 and self.grid_v[i, j].y < 0:
                self.grid_v[i, j].y = 0
        for p in self.x:
            at = self.x[p] / dx
            base = int(at - 0.5)
            fx = at - base
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            v, c = ti.Vector.zero(float, 2), ti.Matrix.zero(float, 2, 2)
            for i, j in ti.static(ti.ndrange(3, 3)):
                offset = ti.Vector([i, j])
                g = self.grid_v[base + offset]
                v += w[i].x * w[j].y * g
                c += 4 * w[i].x * w[j].y * g.outer_product((offset - fx) * dx) / dx**2
            self.v[p] = v
            self.x[p] += dt * v
            self.j[p] *= 1 + dt * c.trace()
            self.c[p] = c

    @ti.kernel
    def activate(self):
        for i in range(64):
            self.sparse[i, (i * i) % 64] = i + 1

    @ti.kernel
    def sum_of_active(self) -> ti.i32:
        total = 0
        for i, j in self.sparse:
            total += self.sparse[i, j]
        return total

    @ti.kernel
    def append(self):
        for i in range(500):
            ti.append(self.node, [], i)

    @ti.kernel
    def sum_of_list(self) -> ti.i32:
        total = 0
        for i in self.list:
            total += self.list[i]
        return total

    @ti.kernel
    def add_up(self):
        for i in self.angle:
            self.loss[None] += ti.sin(self.angle[i]) * self.angle[i]

    @ti.kernel
    def scatter(self):
        for i in self.numbers:
            self.numbers[i] = (i * 7919) % 4096

    def fractal(self):
        self.julia(0.03)
        return self.image.to_numpy()

    def particles(self):
        self.place()
        for _ in range(50):
            self.step()
        return [self.x.to_numpy(), self.v.to_numpy()]

    def structures(self):
        self.node.deactivate_all()
        self.activate()
        self.append()
        return [self.sum_of_active(), self.sum_of_list()]

    def gradient(self):
        self.angle.from_numpy(numpy.linspace(0, 3, 1000, dtype=numpy.float32))
        with ti.ad.Tape(self.loss):
            self.add_up()
        return [self.loss[None], self.angle.grad.to_numpy()]

    def sorted(self):
        self.scatter()
        ti.algorithms.parallel_sort(self.numbers)
        return self.numbers.to_numpy()


WORK = {
    "a Julia set of 640 x 320": ("fractal", 0.05),
    "2,000 particles in a grid (MPM), 50 steps": ("particles", 1e-3),
    "a sparse grid and a list that grows": ("structures", 0),
    "derivatives of a sum": ("gradient", 1e-5),
    "sorting 4,096 integers": ("sorted", 0),
}

# One side exists at a time: both are computed where they belong, and only the numbers are compared.
side, objects = [None], {}


def on(arch, method):
    if side[0] is not arch:
        ti.reset()
        ti.init(arch=arch, offline_cache=False, log_level=ti.WARN)
        side[0], objects["work"] = arch, Work()
    return getattr(objects["work"], method)()


for name, (method, tolerance) in WORK.items():
    steps.step(name, lambda method=method: on(ti.cuda, method), lambda method=method: on(ti.cpu, method), tolerance)
steps.end()
