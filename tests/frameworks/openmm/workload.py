# SPDX-License-Identifier: Apache-2.0
"""OpenMM: molecular dynamics. It writes kernels for each system, which NVRTC compiles to PTX."""

import steps

steps.begin()

import numpy
import openmm
from openmm import app, unit

steps.framework("OpenMM", openmm.version.short_version)

field = app.ForceField("amber14-all.xml", "amber14/tip3pfb.xml")
# Water is placed at random angles, once for both sides.
water = app.Modeller(app.Topology(), [])
water.addSolvent(field, boxSize=openmm.Vec3(2.2, 2.2, 2.2) * unit.nanometer)


def simulation(platform, method, **properties):
    system = field.createSystem(water.topology, nonbondedMethod=method, nonbondedCutoff=0.9 * unit.nanometer, constraints=app.HBonds)
    made = app.Simulation(water.topology, system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName(platform), properties)
    made.context.setPositions(water.positions)
    return made


def forces(made):
    state = made.context.getState(getEnergy=True, getForces=True)
    return [state.getPotentialEnergy()._value / 1e4, state.getForces(asNumpy=True)._value / 1e4]


def positions(made):
    """After the worst contacts are gone, and a hundredth of a picosecond: trajectories diverge."""
    made.context.setPositions(water.positions)
    made.context.setVelocitiesToTemperature(300, 1)
    made.step(10)
    return made.context.getState(getPositions=True).getPositions(asNumpy=True)._value


kept = {}


def once(*key, **properties):
    if key not in kept:
        kept[key] = simulation(*key, **properties)
    return kept[key]


for name, method, compute, precision, tolerance in [
    ("energy and forces of 1,038 atoms, electrostatics by PME", app.PME, forces, "single", 1e-4),
    ("the same in double precision", app.PME, forces, "double", 1e-4),
    ("the same with a reaction field", app.CutoffPeriodic, forces, "single", 1e-4),
    ("10 steps of dynamics", app.PME, positions, "single", 1e-4),
]:
    steps.step(
        name,
        lambda method=method, compute=compute, precision=precision: compute(simulation("CUDA", method, Precision=precision)),
        lambda method=method, compute=compute: compute(once("CPU", method)),
        tolerance,
    )
steps.end()
