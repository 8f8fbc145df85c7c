import { describeAdapter } from '../x402/adapter.contract.js'
import { honoFramework } from './framework.js'

describeAdapter(honoFramework)
