# SPDX-License-Identifier: Apache-2.0
"""PennyLane: quantum circuits and their derivatives, on cuStateVec (lightning.gpu), compared with its simulator for CPUs (lightning.qubit)."""

import steps

steps.begin()

import numpy
import pennylane

steps.framework("PennyLane", pennylane.__version__)

QUBITS = 12
parameters = pennylane.numpy.array(numpy.linspace(0.1, 1.2, QUBITS), requires_grad=True)


def rotated(parameters):
    for wire in range(QUBITS):
        pennylane.RX(parameters[wire], wires=wire)
        pennylane.RY(parameters[wire] * 2, wires=wire)
    for wire in range(QUBITS - 1):
        pennylane.CNOT(wires=[wire, wire + 1])
    pennylane.Rot(0.1, 0.2, 0.3, wires=2)
    pennylane.CRZ(0.4, wires=[1, 5])


def expectation(parameters):
    rotated(parameters)
    return pennylane.expval(pennylane.PauliZ(0) @ pennylane.PauliX(2))


def probabilities(parameters):
    rotated(parameters)
    pennylane.Toffoli(wires=[0, 1, 2])
    return pennylane.probs(wires=range(6))


def state(parameters):
    rotated(parameters)
    return pennylane.state()


def node(name, circuit, method=None):
    return pennylane.QNode(circuit, pennylane.device(name, wires=QUBITS), diff_method=method)


def both(name, compute, tolerance):
    steps.step(name, lambda: compute("lightning.gpu"), lambda: compute("lightning.qubit"), tolerance)


both("the state of 12 qubits", lambda name: node(name, state)(parameters), 1e-12)
both("an expectation value", lambda name: node(name, expectation)(parameters), 1e-12)
both("probabilities", lambda name: node(name, probabilities)(parameters), 1e-12)
both("derivatives by all parameters", lambda name: pennylane.grad(node(name, expectation, "adjoint"))(parameters), 1e-10)
steps.end()
