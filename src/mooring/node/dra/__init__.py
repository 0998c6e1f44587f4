"""Claims on this node: drivers that prepare them, pods that use them, and what is known of both.

claimstates    what is known of claims: the book (pure)
claimneeds     what a claim asks of this node, and whether a pod may use it (pure)
replies        what drivers answered, checked (pure)
healthbook     what drivers said of their devices' health (pure)
podhealth      that health as containers' statuses have it (pure)
checkpoint     the book in a file, as the kubelet writes it; healthfile: health likewise
files          files that are whole or not there
inotify, registryfolder, registration   sockets come and go, and plugins register by them
instances, drivers                      connections to drivers, and which of them is asked
wiping         slices of drivers that are not there are deleted
healthstreams  drivers are listened to
manager        claims are prepared and unprepared: the `DeviceManager`
podresources   monitors are told who has what
counting       metrics
running        the door: all of it together
"""
