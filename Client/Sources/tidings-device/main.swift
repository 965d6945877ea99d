import DeviceDaemon

await DeviceCommand.main()
