# SPDX-License-Identifier: Apache-2.0
"""Qiskit Aer: simulated quantum circuits, on its own kernels (Thrust)."""

import steps

steps.begin()

import numpy
import qiskit_aer
from qiskit import QuantumCircuit, transpile
from qiskit_aer import AerSimulator
from qiskit_aer.noise import NoiseModel, depolarizing_error

steps.framework("Qiskit Aer", qiskit_aer.__version__)


def layers(qubits):
    """Rotations and entangling gates with angles that are always the same."""
    angles, circuit = numpy.random.default_rng(1), QuantumCircuit(qubits)
    for _ in range(4):
        for qubit in range(qubits):
            circuit.u(*angles.random(3) * 6, qubit)
        for qubit in range(qubits - 1):
            circuit.cx(qubit, qubit + 1)
        circuit.ccx(0, 1, 2)
        circuit.rzz(0.3, 1, 3)
        circuit.swap(0, qubits - 1)
    return circuit


def ran(circuit, device, method, **options):
    simulator = AerSimulator(method=method, device=device, **options)
    result = simulator.run(transpile(circuit, simulator, optimization_level=0), shots=1000, seed_simulator=7).result()
    if not result.success:
        raise RuntimeError(result.status)
    return result


def state(device, method, qubits, precision="double"):
    circuit = layers(qubits)
    getattr(circuit, f"save_{method}")()
    return numpy.asarray(ran(circuit, device, method, precision=precision).data()[method])


def counts(device):
    """1000 shots of a noisy circuit: how often each result came. The seed decides the shots."""
    circuit, noise = layers(6), NoiseModel()
    circuit.measure_all()
    noise.add_all_qubit_quantum_error(depolarizing_error(0.02, 1), ["u"])
    found = ran(circuit, device, "statevector", noise_model=noise).get_counts()
    return numpy.array([found.get(f"{bits:06b}", 0) for bits in range(64)])


def both(name, method, qubits, precision, tolerance):
    steps.step(name, lambda: state("GPU", method, qubits, precision), lambda: state("CPU", method, qubits, precision), tolerance)


both("the state of 16 qubits", "statevector", 16, "double", 1e-12)
both("the same in single precision", "statevector", 16, "single", 1e-4)
both("density matrix of 7 qubits", "density_matrix", 7, "double", 1e-12)
both("unitary matrix of 7 qubits", "unitary", 7, "double", 1e-12)
steps.step("1000 shots with noise", lambda: counts("GPU"), lambda: counts("CPU"), 0)
steps.end()
